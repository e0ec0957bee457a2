package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrClosed is returned by Push after Close has been called.
var ErrClosed = errors.New("queue: closed")

type item struct {
	payload  []byte
	deadline time.Time
	attempts int
}

// Queue hands items to workers in the order in which they came.
type Queue struct {
	mu     sync.Mutex
	items  []item
	closed bool
	wake   chan struct{}
}

func New(size int) *Queue {
	return &Queue{items: make([]item, 0, size), wake: make(chan struct{}, 1)}
}

func (q *Queue) Push(payload []byte, ttl time.Duration) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return fmt.Errorf("push of %d bytes: %w", len(payload), ErrClosed)
	}
	q.items = append(q.items, item{payload: payload, deadline: time.Now().Add(ttl)})
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return nil
}

func (q *Queue) Pop(ctx context.Context) ([]byte, error) {
	for {
		q.mu.Lock()
		for len(q.items) > 0 {
			next := q.items[0]
			q.items = q.items[1:]
			if time.Now().Before(next.deadline) {
				q.mu.Unlock()
				return next.payload, nil
			}
		}
		q.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-q.wake:
		}
	}
}
