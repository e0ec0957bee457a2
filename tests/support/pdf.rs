//! PDF documents for requests, made with a library that the gateway does not use.

use lopdf::content::{Content, Operation};
use lopdf::{
    Document, EncryptionState, EncryptionVersion, IncrementalDocument, Object, Permissions,
    SaveOptions, Stream, StringFormat, dictionary,
};

/// A PDF of today's kind (object streams) with these texts on its pages.
pub(crate) fn pdf(pages: &[&str]) -> Vec<u8> {
    let mut document = Document::with_version("1.5");
    let root = document.new_object_id();
    let font = document.add_object(
        dictionary! { "Type" => "Font", "Subtype" => "Type1", "BaseFont" => "Courier" },
    );
    let resources = document.add_object(dictionary! { "Font" => dictionary! { "F1" => font } });
    let mut page = |text: &str| {
        let shows = Operation::new("Tj", vec![Object::string_literal(text)]);
        let font = Operation::new("Tf", vec!["F1".into(), 1.into()]);
        let operations = vec![
            Operation::new("BT", vec![]),
            font,
            shows,
            Operation::new("ET", vec![]),
        ];
        let content = document.add_object(Stream::new(
            dictionary! {},
            Content { operations }.encode().unwrap(),
        ));
        document
            .add_object(dictionary! { "Type" => "Page", "Parent" => root, "Contents" => content })
    };
    let kids: Vec<Object> = pages.iter().map(|text| page(text).into()).collect();
    let count = i64::try_from(kids.len()).unwrap();
    let size = vec![0.into(), 0.into(), 595.into(), 842.into()];
    let tree = dictionary! { "Type" => "Pages", "Kids" => kids, "Count" => count, "Resources" => resources, "MediaBox" => size };
    document.objects.insert(root, tree.into());
    let catalog = document.add_object(dictionary! { "Type" => "Catalog", "Pages" => root });
    document.trailer.set("Root", catalog);
    document.compress();
    let mut out = Vec::new();
    let options = SaveOptions::builder()
        .use_object_streams(true)
        .use_xref_streams(true)
        .build();
    document.save_with_options(&mut out, options).unwrap();
    out
}

/// A page without text, with a note beside it and a form field that say this.
pub(crate) fn noted(text: &str) -> Vec<u8> {
    let mut document = Document::load_mem(&pdf(&["x"])).unwrap();
    let page = *document.get_pages().get(&1).unwrap();
    let said = || Object::string_literal(text);
    let note = dictionary! { "Type" => "Annot", "Subtype" => "Text", "Contents" => said() };
    let field = document.add_object(dictionary! { "FT" => "Tx", "T" => said(), "V" => said() });
    document
        .get_object_mut(page)
        .unwrap()
        .as_dict_mut()
        .unwrap()
        .set("Annots", vec![note.into(), field.into()]);
    let mut out = Vec::new();
    document.save_to(&mut out).unwrap();
    out
}

/// The same document with one page written once more behind it.
pub(crate) fn saved_again(first: &[u8]) -> Vec<u8> {
    let mut again =
        IncrementalDocument::create_from(first.to_vec(), Document::load_mem(first).unwrap());
    let page = *again.get_prev_documents().get_pages().get(&1).unwrap();
    again.opt_clone_object_to_new_document(page).unwrap();
    let mut out = Vec::new();
    again.save_to(&mut out).unwrap();
    out
}

/// The same document, encrypted so that everybody can open it; `name` is how the entry for that is spelled.
pub(crate) fn encrypted(plain: &[u8], name: &str) -> Vec<u8> {
    let mut document = Document::load_mem(plain).unwrap();
    let id = || Object::string_literal("0123456789abcdef");
    document.trailer.set("ID", vec![id(), id()]);
    let version = EncryptionVersion::V2 {
        document: &document,
        owner_password: "owner",
        user_password: "",
        key_length: 128,
        permissions: Permissions::all(),
    };
    document
        .encrypt(&EncryptionState::try_from(version).unwrap())
        .unwrap();
    let mut out = Vec::new();
    document.save_to(&mut out).unwrap();
    let entry = b"/Encrypt ";
    let at = out
        .windows(entry.len())
        .rposition(|window| window == entry)
        .unwrap();
    out.splice(at..at + entry.len(), format!("{name} ").into_bytes());
    out
}

/// A page whose font makes eight characters of each of so many codes, with a script and a file that no page shows.
pub(crate) fn equipped(codes: usize, text: &str) -> Vec<u8> {
    let mut document = Document::load_mem(&pdf(&["x"])).unwrap();
    // As programs write it: the provider's reader takes no other.
    let map = "/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n\
               /CIDSystemInfo << /Registry (Adobe) /Ordering (UCS) /Supplement 0 >> def\n\
               /CMapName /Adobe-Identity-UCS def\n/CMapType 2 def\n\
               1 begincodespacerange\n<0000> <FFFF>\nendcodespacerange\n\
               1 beginbfchar\n<0041> <52178f66665a70b952178f66665a70b9>\nendbfchar\n\
               endcmap\nCMapName currentdict /CMap defineresource pop\nend\nend\n";
    let map = document.add_object(Stream::new(dictionary! {}, map.as_bytes().to_vec()));
    let font = dictionary! { "Type" => "Font", "Subtype" => "Type0", "Encoding" => "Identity-H", "ToUnicode" => map };
    let font = document.add_object(font);
    let script = document
        .add_object(dictionary! { "S" => "JavaScript", "JS" => Object::string_literal(text) });
    let file = document.add_object(Stream::new(
        dictionary! { "Type" => "EmbeddedFile" },
        text.as_bytes().to_vec(),
    ));
    let file = dictionary! { "Type" => "Filespec", "F" => Object::string_literal("a.txt"), "EF" => dictionary! { "F" => file } };
    let names = dictionary! { "EmbeddedFiles" => dictionary! { "Names" => vec![Object::string_literal("a.txt"), file.into()] } };
    let catalog = document.catalog_mut().unwrap();
    catalog.set("OpenAction", script);
    catalog.set("Names", names);
    let shown = Object::String([0, 0x41].repeat(codes), StringFormat::Hexadecimal);
    let operations = vec![
        Operation::new("BT", vec![]),
        Operation::new("Tf", vec!["F1".into(), 1.into()]),
        Operation::new("Tj", vec![shown]),
        Operation::new("ET", vec![]),
    ];
    let content = document.add_object(Stream::new(
        dictionary! {},
        Content { operations }.encode().unwrap(),
    ));
    let page = *document.get_pages().get(&1).unwrap();
    let page = document
        .get_object_mut(page)
        .unwrap()
        .as_dict_mut()
        .unwrap();
    page.set("Contents", content);
    page.set(
        "Resources",
        dictionary! { "Font" => dictionary! { "F1" => font } },
    );
    let mut out = Vec::new();
    document.save_to(&mut out).unwrap();
    out
}
