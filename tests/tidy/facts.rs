//! The names in one source file, taken from its parsed code: paths, patterns, functions and texts, each with its line.
//!
//! It only collects. Code that only tests compile is left out, wherever in the file it is. Inside macros, which have no syntax
//! tree, every run of identifiers joined by `::` counts as a path.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, BinOp, Expr, ImplItem, Item, Meta, Pat, Stmt, Token, TraitItem, UseTree};

/// A path as it is written, and the module in which it is written.
#[derive(Debug, Clone)]
pub(crate) struct Name {
    pub(crate) line: usize,
    pub(crate) module: Vec<String>,
    pub(crate) segments: Vec<String>,
    /// It stands in a `use`.
    pub(crate) imported: bool,
    /// It stands in a pattern or beside `==`: the code asks whether a value is this one.
    pub(crate) compared: bool,
}

/// A function and its length in lines, from its signature to its closing brace.
#[derive(Debug, Clone)]
pub(crate) struct Function {
    pub(crate) line: usize,
    pub(crate) name: String,
    pub(crate) lines: usize,
}

/// A string literal or an identifier.
#[derive(Debug, Clone)]
pub(crate) struct Text {
    pub(crate) line: usize,
    pub(crate) text: String,
    pub(crate) literal: bool,
}

/// All that the rules ask about one file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    pub(crate) module: Vec<String>,
    pub(crate) names: Vec<Name>,
    pub(crate) functions: Vec<Function>,
    /// Line and name of each struct, enum, union, trait and type alias.
    pub(crate) types: Vec<(usize, String)>,
    pub(crate) texts: Vec<Text>,
    /// Named fields of structs.
    pub(crate) fields: BTreeSet<String>,
    /// Patterns that are true of what is not written there: the line, what is open, and the types that stand beside it or around it.
    pub(crate) open: Vec<OpenPattern>,
    /// Lines with `async` or `.await`.
    pub(crate) asyncs: Vec<usize>,
    /// Local name to the path it was imported from.
    pub(crate) aliases: BTreeMap<String, Vec<String>>,
    /// Methods that other files may call and that are no trait's: the type as it is written, and the method.
    pub(crate) methods: Vec<(Name, String)>,
    /// Names of methods that are called.
    pub(crate) calls: BTreeSet<String>,
    /// Methods of traits: a call of one does not say whose it is.
    pub(crate) of_traits: BTreeSet<String>,
    /// Child modules with code outside tests, and those that only tests compile.
    pub(crate) children: BTreeSet<String>,
    pub(crate) test_children: BTreeSet<String>,
}

impl Facts {
    /// Reads one file, whose top is the module `module` (the crate's name first).
    pub(crate) fn read(module: Vec<String>, text: &str) -> Result<Self, syn::Error> {
        let parsed = syn::parse_file(text)?;
        let mut reader = Reader {
            scope: module.clone(),
            facts: Self {
                module,
                ..Self::default()
            },
            comparing: 0,
        };
        reader.visit_file(&parsed);
        Ok(reader.facts)
    }
}

struct Reader {
    facts: Facts,
    scope: Vec<String>,
    comparing: usize,
}

impl Reader {
    fn name(&mut self, line: usize, segments: Vec<String>, imported: bool) {
        let (module, compared) = (self.scope.clone(), self.comparing > 0 && !imported);
        self.facts.names.push(Name {
            line,
            module,
            segments,
            imported,
            compared,
        });
    }

    /// Every leaf of a `use` is a path, and what it is called here an alias.
    fn imports(&mut self, tree: &UseTree, before: &[String]) {
        let with = |ident: &syn::Ident| {
            before
                .iter()
                .cloned()
                .chain([ident.to_string()])
                .collect::<Vec<_>>()
        };
        match tree {
            UseTree::Path(path) => self.imports(&path.tree, &with(&path.ident)),
            UseTree::Group(group) => group
                .items
                .iter()
                .for_each(|item| self.imports(item, before)),
            UseTree::Glob(glob) => {
                let segments = before.iter().cloned().chain(["*".to_owned()]).collect();
                self.name(glob.span().start().line, segments, true);
            }
            UseTree::Name(name) if name.ident == "self" => {
                self.import(name.span(), before.to_vec(), None)
            }
            UseTree::Name(name) => self.import(name.span(), with(&name.ident), None),
            UseTree::Rename(name) if name.ident == "self" => {
                self.import(name.span(), before.to_vec(), Some(name.rename.to_string()));
            }
            UseTree::Rename(name) => self.import(
                name.span(),
                with(&name.ident),
                Some(name.rename.to_string()),
            ),
        }
    }

    fn import(&mut self, span: proc_macro2::Span, segments: Vec<String>, called: Option<String>) {
        let called = called
            .or_else(|| segments.last().cloned())
            .unwrap_or_default();
        let mut full = segments.clone();
        // `self` and `super` mean the module in which the import stands.
        let ups = full
            .iter()
            .take_while(|part| matches!(part.as_str(), "self" | "super"))
            .count();
        if ups > 0 {
            let supers = full
                .iter()
                .take(ups)
                .filter(|part| *part == "super")
                .count();
            let kept = self.scope.len().saturating_sub(supers);
            full = self
                .scope
                .iter()
                .take(kept)
                .chain(full.iter().skip(ups))
                .cloned()
                .collect();
        }
        self.facts.aliases.insert(called, full);
        self.name(span.start().line, segments, true);
    }

    /// Paths, texts and comparisons in tokens that have no syntax tree.
    fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let is = |at: usize, wanted: char| matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == wanted);
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let (begin, line) = (at, token.span().start().line);
            at += 1;
            match token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Literal(literal) => self.literal(line, literal),
                TokenTree::Punct(_) => {}
                TokenTree::Ident(ident) => {
                    let mut segments = vec![ident.to_string()];
                    while is(at, ':') && is(at + 1, ':') {
                        match tokens.get(at + 2) {
                            Some(TokenTree::Ident(next)) => segments.push(next.to_string()),
                            _ => break,
                        }
                        at += 3;
                    }
                    self.words(line, &segments);
                    let called = matches!(tokens.get(at), Some(TokenTree::Group(group))
                        if group.delimiter() == proc_macro2::Delimiter::Parenthesis);
                    if called && begin > 0 && is(begin - 1, '.') {
                        self.facts.calls.insert(ident.to_string());
                    }
                    if let ("enum" | "struct", Some(TokenTree::Ident(name))) =
                        (&*segments[0], tokens.get(at))
                    {
                        self.facts.types.push((line, name.to_string()));
                    }
                    let equals = |at: usize| (is(at, '=') || is(at, '!')) && is(at + 1, '=');
                    let arm = is(at, '=') && is(at + 1, '>') || is(at, '|') && !is(at + 1, '|');
                    let compared = arm || equals(at) || begin > 1 && equals(begin - 2);
                    self.comparing += usize::from(compared);
                    if segments.len() > 1 {
                        self.name(line, segments, false);
                    } else if ident == "async" || ident == "await" {
                        self.facts.asyncs.push(line);
                    }
                    self.comparing -= usize::from(compared);
                }
            }
        }
    }

    fn words(&mut self, line: usize, segments: &[String]) {
        let words = segments.iter().map(|text| Text {
            line,
            text: text.clone(),
            literal: false,
        });
        self.facts.texts.extend(words);
    }

    fn literal(&mut self, line: usize, literal: &proc_macro2::Literal) {
        let text = match syn::Lit::new(literal.clone()) {
            syn::Lit::Str(text) => text.value(),
            syn::Lit::ByteStr(text) => String::from_utf8_lossy(&text.value()).into_owned(),
            _ => return,
        };
        self.facts.texts.push(Text {
            line,
            text,
            literal: true,
        });
    }

    fn function(&mut self, signature: &syn::Signature, end: proc_macro2::Span) {
        let line = signature.span().start().line;
        let lines = end.end().line.saturating_sub(line) + 1;
        self.facts.functions.push(Function {
            line,
            name: signature.ident.to_string(),
            lines,
        });
        if signature.asyncness.is_some() {
            self.facts.asyncs.push(line);
        }
    }

    fn comparing(&mut self, inside: impl FnOnce(&mut Self)) {
        self.comparing += 1;
        inside(self);
        self.comparing -= 1;
    }
}

/// A pattern that takes a variant or a field that does not exist yet.
#[derive(Debug, Clone)]
pub(crate) struct OpenPattern {
    pub(crate) line: usize,
    /// `_ =>` or `..`.
    pub(crate) what: &'static str,
    pub(crate) types: Vec<String>,
}

/// The types whose variants a pattern names.
#[derive(Default)]
struct Variants(Vec<String>);

impl<'ast> Visit<'ast> for Variants {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        let mut before = path.segments.iter().rev().skip(1);
        self.0.extend(before.next().map(|of| of.ident.to_string()));
    }
}

fn is_open(pattern: &Pat) -> bool {
    match pattern {
        Pat::Wild(_) => true,
        Pat::Tuple(tuple) => tuple.elems.iter().all(is_open),
        Pat::Paren(inner) => is_open(&inner.pat),
        _ => false,
    }
}

/// Whether only tests compile what stands behind these attributes.
fn only_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            let means_test = |meta: &Meta| match meta {
                Meta::Path(path) => path.is_ident("test"),
                Meta::List(all) if all.path.is_ident("all") => all
                    .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
                    .is_ok_and(|parts| parts.iter().any(|part| part.path().is_ident("test"))),
                _ => false,
            };
            list.parse_args::<Meta>()
                .is_ok_and(|meta| means_test(&meta))
        }
        meta => meta.path().is_ident("test"),
    })
}

fn item_attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// The name of the type that an item defines.
fn type_name(item: &Item) -> Option<&syn::Ident> {
    match item {
        Item::Enum(item) => Some(&item.ident),
        Item::Struct(item) => Some(&item.ident),
        Item::Trait(item) => Some(&item.ident),
        Item::Type(item) => Some(&item.ident),
        Item::Union(item) => Some(&item.ident),
        _ => None,
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast Item) {
        if !only_for_tests(item_attributes(item)) {
            let defined = type_name(item).map(|name| (name.span().start().line, name.to_string()));
            self.facts.types.extend(defined);
            visit::visit_item(self, item);
        } else if let Item::Mod(module) = item {
            self.facts.test_children.insert(module.ident.to_string());
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let attributes: &[Attribute] = match item {
            ImplItem::Const(item) => &item.attrs,
            ImplItem::Fn(item) => &item.attrs,
            _ => &[],
        };
        if !only_for_tests(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        let attributes: &[Attribute] = match statement {
            Stmt::Local(local) => &local.attrs,
            Stmt::Macro(call) => &call.attrs,
            _ => &[],
        };
        if !only_for_tests(attributes) {
            visit::visit_stmt(self, statement);
        }
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        self.facts.children.insert(module.ident.to_string());
        self.scope.push(module.ident.to_string());
        visit::visit_item_mod(self, module);
        self.scope.pop();
    }

    /// A macro of the file is a name of its own, which it may pass on.
    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        self.facts
            .children
            .extend(item.ident.as_ref().map(ToString::to_string));
        syn::visit::visit_item_macro(self, item);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.imports(&item.tree, &[]);
    }

    fn visit_item_extern_crate(&mut self, item: &'ast syn::ItemExternCrate) {
        let called = item.rename.as_ref().map(|(_, name)| name.to_string());
        self.import(item.span(), vec![item.ident.to_string()], called);
    }

    /// Who may see an item is not a path that code follows.
    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string())
            .collect();
        self.name(path.span().start().line, segments, false);
        visit::visit_path(self, path);
    }

    fn visit_ident(&mut self, ident: &'ast proc_macro2::Ident) {
        self.words(ident.span().start().line, &[ident.to_string()]);
    }

    fn visit_lit_str(&mut self, text: &'ast syn::LitStr) {
        self.facts.texts.push(Text {
            line: text.span().start().line,
            text: text.value(),
            literal: true,
        });
    }

    fn visit_lit_byte_str(&mut self, text: &'ast syn::LitByteStr) {
        let value = String::from_utf8_lossy(&text.value()).into_owned();
        self.facts.texts.push(Text {
            line: text.span().start().line,
            text: value,
            literal: true,
        });
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        let asks = call
            .path
            .segments
            .last()
            .is_some_and(|name| name.ident.to_string().ends_with("matches"));
        if asks {
            self.comparing(|reader| reader.tokens(call.tokens.clone()));
        } else {
            self.tokens(call.tokens.clone());
        }
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if !attribute.path().is_ident("doc") && !attribute.path().is_ident("expect") {
            self.visit_path(attribute.path());
            if let Meta::List(list) = &attribute.meta {
                self.tokens(list.tokens.clone());
            }
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        let name = field.ident.as_ref().map(ToString::to_string);
        self.facts.fields.extend(name);
        visit::visit_field(self, field);
    }

    fn visit_expr_match(&mut self, matching: &'ast syn::ExprMatch) {
        let mut beside = Variants::default();
        matching
            .arms
            .iter()
            .for_each(|arm| beside.visit_pat(&arm.pat));
        let arms = matching
            .arms
            .iter()
            .filter(|arm| is_open(&arm.pat) && arm.guard.is_none());
        self.facts.open.extend(arms.map(|arm| OpenPattern {
            line: arm.span().start().line,
            what: "_ =>",
            types: beside.0.clone(),
        }));
        visit::visit_expr_match(self, matching);
    }

    fn visit_pat_struct(&mut self, pattern: &'ast syn::PatStruct) {
        // `Variant { .. }` only asks which variant it is.
        if let Some(rest) = pattern.rest.as_ref().filter(|_| !pattern.fields.is_empty()) {
            let segments = pattern.path.segments.iter();
            self.facts.open.push(OpenPattern {
                line: rest.span().start().line,
                what: "..",
                types: segments.map(|segment| segment.ident.to_string()).collect(),
            });
        }
        visit::visit_pat_struct(self, pattern);
    }

    fn visit_pat(&mut self, pattern: &'ast Pat) {
        self.comparing(|reader| visit::visit_pat(reader, pattern));
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        if matches!(binary.op, BinOp::Eq(_) | BinOp::Ne(_)) {
            self.comparing(|reader| visit::visit_expr_binary(reader, binary));
        } else {
            visit::visit_expr_binary(self, binary);
        }
    }

    fn visit_expr(&mut self, expression: &'ast Expr) {
        if matches!(expression, Expr::Async(_) | Expr::Await(_)) {
            self.facts.asyncs.push(expression.span().start().line);
        }
        visit::visit_expr(self, expression);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.facts.calls.insert(call.method.to_string());
        visit::visit_expr_method_call(self, call);
    }

    fn visit_item_impl(&mut self, block: &'ast syn::ItemImpl) {
        if let (None, syn::Type::Path(path)) = (&block.trait_, &*block.self_ty) {
            let segments = path.path.segments.iter();
            let of = Name {
                line: block.span().start().line,
                module: self.scope.clone(),
                segments: segments.map(|part| part.ident.to_string()).collect(),
                imported: false,
                compared: false,
            };
            for item in &block.items {
                if let ImplItem::Fn(method) = item
                    && !only_for_tests(&method.attrs)
                    && !matches!(method.vis, syn::Visibility::Inherited)
                {
                    let name = method.sig.ident.to_string();
                    self.facts.methods.push((of.clone(), name));
                }
            }
        }
        visit::visit_item_impl(self, block);
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.function(&function.sig, function.block.span());
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !only_for_tests(&function.attrs) {
            self.function(&function.sig, function.block.span());
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_trait_item(&mut self, item: &'ast TraitItem) {
        if let TraitItem::Fn(function) = item {
            self.function(&function.sig, function.span());
            let name = function.sig.ident.to_string();
            self.facts.of_traits.insert(name);
        }
        visit::visit_trait_item(self, item);
    }
}
