//! Documents as honest programs write them, and as an attacker writes them to get pages for free.

use std::time::Instant;

use lopdf::content::{Content, Operation};
use lopdf::{Document, Object, SaveOptions, Stream, dictionary};
use miniz_oxide::deflate::compress_to_vec_zlib;

use super::tokens;

/// A document with these texts on its pages, through a library that writes them.
fn document(pages: &[&str]) -> Document {
    let mut document = Document::with_version("1.5");
    let root = document.new_object_id();
    let font = document.add_object(
        dictionary! { "Type" => "Font", "Subtype" => "Type1", "BaseFont" => "Courier" },
    );
    let resources = document.add_object(dictionary! { "Font" => dictionary! { "F1" => font } });
    let kids: Vec<Object> = pages
        .iter()
        .map(|text| {
            let operations = vec![
                Operation::new("BT", vec![]),
                Operation::new("Tf", vec!["F1".into(), 12.into()]),
                Operation::new("Tj", vec![Object::string_literal(*text)]),
                Operation::new("ET", vec![]),
            ];
            let content = Content { operations }.encode().unwrap();
            let content = document.add_object(Stream::new(dictionary! {}, content));
            document
                .add_object(
                    dictionary! { "Type" => "Page", "Parent" => root, "Contents" => content },
                )
                .into()
        })
        .collect();
    let count = kids.len() as i64;
    let size = vec![0.into(), 0.into(), 595.into(), 842.into()];
    let tree = dictionary! { "Type" => "Pages", "Kids" => kids, "Count" => count, "Resources" => resources, "MediaBox" => size };
    document.objects.insert(root, tree.into());
    let catalog = document.add_object(dictionary! { "Type" => "Catalog", "Pages" => root });
    document.trailer.set("Root", catalog);
    document
}

fn saved(mut document: Document, modern: bool) -> Vec<u8> {
    let mut out = Vec::new();
    document.compress();
    if modern {
        let options = SaveOptions::builder()
            .use_object_streams(true)
            .use_xref_streams(true)
            .build();
        document.save_with_options(&mut out, options).unwrap();
    } else {
        document.save_to(&mut out).unwrap();
    }
    out
}

/// A document written by hand: numbered objects, and no index at all.
fn plain(objects: &[(u32, String)]) -> Vec<u8> {
    let body: String = objects
        .iter()
        .map(|(number, text)| format!("{number} 0 obj\n{text}\nendobj\n"))
        .collect();
    format!("%PDF-1.7\n{body}trailer <</Root 1 0 R>>\n%%EOF\n").into_bytes()
}

fn stream(dict: &str, data: &[u8]) -> String {
    // Latin-1, so that any bytes fit into the text of these tests.
    let data = hex::encode(data);
    format!(
        "<<{dict} /Filter /ASCIIHexDecode /Length {}>>\nstream\n{data}>\nendstream",
        data.len() + 1
    )
}

#[test]
fn pages_of_honest_documents_are_counted_with_their_text() {
    let long = "the quick brown fox jumps over the lazy dog ".repeat(600);
    for modern in [false, true] {
        assert_eq!(tokens(&saved(document(&["one"]), modern)), Some(3_000));
        assert_eq!(
            tokens(&saved(document(&["a few words"; 90]), modern)),
            Some(270_000)
        );
        // Its bytes, a picture, and an ordinary page.
        assert_eq!(
            tokens(&saved(document(&[&long, "short"]), modern)),
            Some(long.len() as u64 + 1_600 + 3_000)
        );
    }
}

#[test]
fn text_that_stands_for_marked_content_counts_at_each_of_its_marks() {
    let said = "the quick brown fox jumps over the lazy dog ".repeat(20);
    let document = |marks: usize, properties: String| {
        let content = stream("", "/Span /M0 BDC (x) Tj EMC ".repeat(marks).as_bytes());
        let apart = properties.contains("6 0 R");
        let mut objects = vec![
            (1, "<</Type /Catalog /Pages 2 0 R>>".to_owned()),
            (2, "<</Type /Pages /Kids [3 0 R] /Count 1>>".to_owned()),
            (3, "<</Type /Page /Parent 2 0 R /Contents 4 0 R /Resources <</Properties <</M0 5 0 R>>>>>>".to_owned()),
            (4, content),
            (5, properties),
        ];
        objects.extend(apart.then(|| (6, format!("({said})"))));
        tokens(&plain(&objects)).unwrap()
    };
    for properties in [
        format!("<</ActualText ({said})>>"),
        "<</ActualText 6 0 R>>".to_owned(),
    ] {
        let (found, most) = (document(100, properties), 101 * said.len() as u64);
        assert!((most..most + 3_000).contains(&found), "{found}");
    }
    let tagged = document(100, format!("<</S /Figure /ActualText ({said})>>"));
    assert!(
        tagged < 4_000,
        "an element of the structure is shown once: {tagged}"
    );
    assert!(
        document(100, "<</Type /OCG>>".to_owned()) <= 3_000,
        "a layer"
    );
}

#[test]
fn a_document_saved_once_more_has_all_its_pages() {
    let first = saved(document(&["x"; 90]), true);
    let mut again =
        lopdf::IncrementalDocument::create_from(first.clone(), Document::load_mem(&first).unwrap());
    let page = *again.get_prev_documents().get_pages().get(&1).unwrap();
    again.opt_clone_object_to_new_document(page).unwrap();
    let mut out = Vec::new();
    again.save_to(&mut out).unwrap();
    assert!(out.len() > first.len());
    assert_eq!(tokens(&out), Some(270_000));
}

#[test]
fn one_page_can_hold_a_book() {
    let tiny = "1 0 0 1 0 0 cm (some words of a book ) Tj ".repeat(30_000);
    let data = compress_to_vec_zlib(tiny.as_bytes(), 6);
    let content = hex::encode(data);
    let pdf = plain(&[
        (1, "<</Type /Catalog /Pages 2 0 R>>".to_owned()),
        (2, "<</Type /Pages /Kids [3 0 R] /Count 1>>".to_owned()),
        (
            3,
            "<</Type /Page /Parent 2 0 R /Contents 4 0 R>>".to_owned(),
        ),
        (
            4,
            format!("<</Filter [/ASCIIHexDecode /FlateDecode]>> stream\n{content}>\nendstream"),
        ),
    ]);
    assert_eq!(
        tokens(&pdf),
        Some(30_000 * "some words of a book ".len() as u64 + 1_600)
    );
}

#[test]
fn forms_count_as_often_as_they_are_drawn_also_in_circles() {
    let words = "BT (twenty words of text that stand in a form and are drawn again and again by everybody who likes) Tj ET ";
    let form = |number: u32, content: &str| {
        (
            number,
            stream("/Type /XObject /Subtype /Form", content.as_bytes()),
        )
    };
    let page = |content: &str| {
        let mut objects = vec![
            (2, "<</Type /Pages /Kids [3 0 R] /Count 1>>".to_owned()),
            (
                3,
                "<</Type /Page /Parent 2 0 R /Contents 4 0 R /Resources 9 0 R>>".to_owned(),
            ),
            (4, stream("", content.as_bytes())),
            (
                9,
                "<</XObject <</A 5 0 R /B 6 0 R /C 7 0 R /#44 8 0 R>>>>".to_owned(),
            ),
        ];
        objects.extend([
            form(5, words),
            form(6, &"/A Do ".repeat(100)),
            form(7, &"/B Do ".repeat(100)),
        ]);
        objects.extend(content.starts_with("/D").then(|| form(8, "/D Do /C Do")));
        tokens(&plain(&objects)).unwrap()
    };
    assert!(
        (10_000 * 18..10_000 * 100).contains(&page("/C Do")),
        "{}",
        page("/C Do")
    );
    assert!(
        page("/D Do") > page("/C Do") - 5_000,
        "through a form that draws itself, by another spelling of its name"
    );
    assert_eq!(page("/Nobody Do"), page("() Tj"));
    let note = |appearance: &str| {
        let note = format!("<</Type /Annot /Subtype /FreeText /AP {appearance}>>");
        let page = "<</Type /Page /Parent 2 0 R /Annots [4 0 R]>>".to_owned();
        let states = "<</Off 5 0 R /On 5 0 R>>".to_owned();
        let all = [
            (3, page),
            (4, note),
            form(5, &words.repeat(500)),
            (6, "<</N 7 0 R>>".to_owned()),
            (7, states),
        ];
        tokens(&plain(&all)).unwrap()
    };
    for appearance in [
        "<</N 5 0 R>>",
        "<</N <</On 5 0 R>>>>",
        "6 0 R",
        "<</N 7 0 R>>",
    ] {
        assert!(
            note(appearance) > 3_000 + 500 * 18,
            "a note's text is on no page: {appearance}"
        );
    }
}

#[test]
fn what_notes_and_form_fields_say_counts_wherever_they_stand() {
    let words = "twenty words of a note that no page shows and that some readers take for a part of the text ".repeat(500);
    let utf16: String = "feff".to_owned()
        + &words
            .encode_utf16()
            .map(|unit| format!("{unit:04x}"))
            .collect::<String>();
    let found = |annots: &str, more: &[(u32, String)]| {
        let page = format!("<</Type /Page /Parent 2 0 R /Annots {annots}>>");
        tokens(&plain(&[&[(3, page)], more].concat())).unwrap()
    };
    let form = (
        5,
        stream(
            "/Type /XObject /Subtype /Form",
            format!("({words}) Tj").as_bytes(),
        ),
    );
    for (name, annots, more) in [
        (
            "a note",
            "[4 0 R]".to_owned(),
            vec![(4, format!("<</Type /Annot /Contents ({words})>>"))],
        ),
        (
            "a note in its page",
            format!("[<</Type /Annot /Contents ({words})>>]"),
            vec![],
        ),
        (
            "in hexadecimal",
            format!("[<</Contents <{utf16}>>>]"),
            vec![],
        ),
        (
            "by reference",
            "[<</Contents 6 0 R>>]".to_owned(),
            vec![(6, format!("({words})"))],
        ),
        (
            "a field",
            "[]".to_owned(),
            vec![(
                4,
                format!("<</AcroForm <</Fields [<</Kids [<</V ({words})>>]>>]>>>>"),
            )],
        ),
        (
            "an appearance in its page",
            "[<</AP <</N 5 0 R>>>>]".to_owned(),
            vec![form],
        ),
    ] {
        assert!(
            (3_000 + 500 * 18..3_000 + 500 * 200).contains(&found(&annots, &more)),
            "{name}: {}",
            found(&annots, &more)
        );
    }
    let signature = format!(
        "<</Type /Sig /ByteRange [0 1 2 3] /Contents <{}>>>",
        "00ff".repeat(9_000)
    );
    assert_eq!(
        found("[]", &[(4, format!("<</V {signature}>>"))]),
        3_000,
        "a signature is no text"
    );
}

#[test]
fn readers_that_could_differ_are_charged_by_the_larger_count() {
    let tree = |kids: &str, count: u32| {
        plain(&[
            (2, format!("<</Type /Pages /Kids [{kids}] /Count {count}>>")),
            (
                3,
                "<</Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R>>".to_owned(),
            ),
            (4, stream("", b"(x) Tj")),
        ])
    };
    assert_eq!(
        tokens(&tree("3 0 R", 1)),
        Some(3_000),
        "a page without a type"
    );
    assert_eq!(
        tokens(&tree(&"3 0 R ".repeat(90), 1)),
        Some(270_000),
        "one page, shown 90 times"
    );
    assert_eq!(
        tokens(&tree("3 0 R", 90)),
        Some(270_000),
        "pages that are only claimed"
    );
    let escaped = plain(&[
        (3, "<</T#79pe /P#61ge /Contents 4 0 R>>".to_owned()),
        (4, stream("", b"(x) Tj")),
    ]);
    assert_eq!(tokens(&escaped), Some(3_000));
    let hidden = format!(
        "%PDF-1.7\n1 0 obj <</Length 99>> stream\n{}",
        "7 0 obj <</Type/Page>> 8 0 obj <</Type/Page>>"
    );
    assert_eq!(
        tokens(hidden.as_bytes()),
        Some(6_000),
        "objects inside something else, where an index may point"
    );
    let cmap = b"1 beginbfchar <41> <4e2d00650066006700680069006a006b> endbfchar";
    let font = plain(&[
        (3, "<</Type /Page /Contents 4 0 R>>".to_owned()),
        (
            4,
            stream("", format!("({}) Tj", "A".repeat(9_000)).as_bytes()),
        ),
        (5, "<</Type /Font /ToUnicode 6 0 R>>".to_owned()),
        (6, stream("", cmap)),
    ]);
    assert_eq!(
        tokens(&font),
        Some(9_000 * 8 + 1_600),
        "one code can stand for eight characters"
    );
}

#[test]
fn fonts_that_make_many_characters_of_one_are_found_wherever_they_stand() {
    let text = (
        4,
        stream("", format!("({}) Tj", "A".repeat(9_000)).as_bytes()),
    );
    let cmap = (
        6,
        stream(
            "",
            b"1 beginbfchar <41> <4e2d00650066006700680069006a006b> endbfchar",
        ),
    );
    let names = "[65 /uni4E2D56FD4E2D56FD4E2D56FD4E2D56FD]";
    let page = |font: &str| {
        let page = (
            3,
            format!("<</Type /Page /Contents 4 0 R /Resources <</Font <</F1 {font}>>>>>>"),
        );
        let mut objects = vec![page, text.clone(), cmap.clone()];
        objects.extend(font.contains("7 0 R").then(|| (7, names.to_owned())));
        tokens(&plain(&objects))
    };
    for font in [
        "<</Type /Font /ToUnicode 6 0 R>>".to_owned(),
        format!("<</Encoding <</Differences {names}>>>>"),
        "<</Encoding <</Differences 7 0 R>>>>".to_owned(),
        "<</Encoding <</Differences [65 /u4E2D_b_c_d_e_f_g_h.alt]>>>>".to_owned(),
        "<</Encoding <</Differences [65 /f_uni5217_u1F600_a_b_c_d]>>>>".to_owned(),
    ] {
        let found = page(&font).unwrap();
        assert!(
            (9_000 * 8 + 1_600..=9_000 * 9 + 1_600).contains(&found),
            "{font}: {found}"
        );
    }
    let chinese = page("<</Encoding <</Differences [65 /uni4E2D /.notdef]>>>>");
    assert_eq!(chinese, Some(9_000 + 1_600), "a token for each");
    let usual = page("<</Encoding <</Differences [65 /A /f_f_i /uni00E9 /unicorn /u]>>>>");
    assert_eq!(
        usual,
        page("<<>>"),
        "names of Latin letters and ligatures change nothing"
    );
}

#[test]
fn what_cannot_be_read_or_costs_too_much_has_no_count() {
    let bomb = |layers: usize| {
        let mut data = vec![0_u8; 90 << 20];
        (0..layers).for_each(|_| data = compress_to_vec_zlib(&data, 6));
        let filters = "/FlateDecode ".repeat(layers);
        let mut pdf =
            format!("%PDF-1.7\n3 0 obj<</Type/Page/Contents 4 0 R>>endobj\n4 0 obj<</Filter[{filters}]>>stream\n").into_bytes();
        pdf.extend(data);
        pdf.extend(b"\nendstream endobj");
        pdf
    };
    let encrypted = plain(&[
        (3, "<</Type/Page>>".to_owned()),
        (4, "<</Encrypt 5 0 R>>".to_owned()),
    ]);
    let disguised = plain(&[
        (3, "<</Type/Page>>".to_owned()),
        (4, "<</#45ncr#79pt 5 0 R>>".to_owned()),
    ]);
    let odd = plain(&[
        (3, "<</Type/Page/Contents 4 0 R>>".to_owned()),
        (4, stream("", b"x").replace("ASCIIHexDecode", "NewDecode")),
    ]);
    let deep = format!("%PDF-1.7\n1 0 obj {}", "<</A ".repeat(100_000));
    let endless = format!("%PDF-1.7\n{}", "1 0 obj << ".repeat(200_000));
    let many = format!("%PDF-1.7\n{}", "1 0 obj ".repeat(500_000));
    for (name, pdf) in [
        ("nothing", Vec::new()),
        ("no document", b"hello".to_vec()),
        ("no page", b"%PDF-1.7\n".to_vec()),
        ("a bomb", bomb(1)),
        ("a bomb in a bomb", bomb(2)),
        ("encrypted", encrypted),
        ("encrypted by another spelling", disguised),
        ("a filter nobody knows", odd),
        ("too deep", deep.into_bytes()),
        ("never closed", endless.into_bytes()),
        ("too many objects", many.into_bytes()),
    ] {
        let began = Instant::now();
        assert_eq!(tokens(&pdf), None, "{name}");
        assert!(
            began.elapsed().as_secs() < 10,
            "{name}: {:?}",
            began.elapsed()
        );
    }
}

#[test]
fn nothing_is_read_again_for_each_object_that_points_to_it() {
    let many = |object: &str| object.repeat(20_000);
    let page = "%PDF-1.7\n3 0 obj<</Type/Page>>\n";
    for (name, pdf, found) in [
        (
            "a number that is a long list",
            format!(
                "{page}9 0 obj[{}]\n{}",
                many("0 0 0 0 0 "),
                many("1 0 obj<</N 9 0 R/First 9 0 R>>\n")
            ),
            Some(3_000),
        ),
        (
            "names of forms",
            format!(
                "{page}9 0 obj<<{}>>\n{}",
                many("/a 3 0 R/b 3 0 R"),
                many("1 0 obj<</XObject 9 0 R>>\n")
            ),
            Some(3_000),
        ),
        (
            "a comment to the end of the file",
            format!("{page}{}", many("1 0 obj%1 0 obj%1 0 obj%1 0 obj%")),
            None,
        ),
    ] {
        let began = Instant::now();
        assert_eq!(tokens(pdf.as_bytes()), found, "{name}");
        let took = began.elapsed();
        assert!(took.as_secs() < 10, "{name}: {took:?}");
    }
}

proptest::proptest! {
    #[test]
    fn no_damage_makes_it_panic(at in 0_usize..4_000, byte in 0_u8..=255, cut in 0_usize..4_000) {
        let mut pdf = saved(document(&["one page", "and another"]), at % 2 == 0);
        let length = pdf.len();
        pdf[at % length] = byte;
        let _ = tokens(&pdf);
        pdf.truncate(cut % length);
        let _ = tokens(&pdf);
    }
}

#[test]
fn letters_and_signs_without_spaces_count_at_least_what_a_tokenizer_makes_of_them() {
    let mut state = 7_u64;
    let mut random = |signs: &[u8], length: usize| -> String {
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            char::from(signs[(state >> 33) as usize % signs.len()])
        };
        (0..length).map(|_| next()).collect()
    };
    for signs in [
        b"bcdfghjklmnpqrstvwxz".as_slice(),
        b"!#$%&*+,-./:;<=>?@[]^_{|}~",
        b"ABCDEFghijkl0123456789+/",
    ] {
        let text = random(signs, 100_000);
        let truth = tiktoken_rs::o200k_base_singleton()
            .encode_ordinary(&text)
            .len() as u64
            + 1_600;
        let found = tokens(&saved(document(&[text.as_str()]), true)).unwrap();
        assert!((truth..=truth * 2).contains(&found), "{found} of {truth}");
    }
}
