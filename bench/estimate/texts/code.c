#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define RING_MASK(r) ((r)->cap - 1u)

struct ring {
	uint8_t *buf;
	uint32_t cap, head, tail;
};

int ring_init(struct ring *r, uint32_t cap)
{
	if (cap == 0 || (cap & (cap - 1)) != 0)
		return -EINVAL;
	r->buf = malloc(cap);
	if (!r->buf)
		return -ENOMEM;
	r->cap = cap;
	r->head = r->tail = 0;
	return 0;
}

size_t ring_write(struct ring *r, const void *src, size_t len)
{
	size_t space = r->cap - (r->head - r->tail);
	size_t off = r->head & RING_MASK(r);
	size_t n = len < space ? len : space;
	size_t first = n < r->cap - off ? n : r->cap - off;

	memcpy(r->buf + off, src, first);
	memcpy(r->buf, (const uint8_t *)src + first, n - first);
	r->head += (uint32_t)n;
	return n;
}

static const uint32_t table[8] = {
	0x00000000, 0x77073096, 0xee0e612c, 0x990951ba,
	0x076dc419, 0x706af48f, 0xe963a535, 0x9e6495a3,
};
