//! The modules of a crate: what each defines, what it imports, and in which file a path ends.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::{
    Attribute, File, Item, ItemUse, Path, UseTree, Visibility,
    visit::{self, Visit},
};

use super::tokens::is_cfg_test;

/// The modules of one target, its root first.
#[derive(Debug, Default)]
pub(super) struct Modules(Vec<Module>);

#[derive(Debug, Default)]
struct Module {
    file: String,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    items: BTreeSet<String>,
    /// Names that `use` brings, with the path that each stands for.
    uses: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
    /// Paths in code, and private imports.
    paths: Vec<Vec<String>>,
}

/// How deep re-exports and globs are followed.
const DEPTH: usize = 12;

#[derive(Clone, Copy)]
enum Place {
    Module(usize),
    /// An item of this module.
    Item(usize),
}

impl Modules {
    /// The modules that the file `root` declares, those for tests left out; `read` gives a file's text.
    pub(super) fn of(root: &str, read: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut modules = Self::default();
        if let Some(file) = parse(root, read) {
            let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
            modules.add(root, None, &folder, file.items, read);
        }
        modules
    }

    fn add(
        &mut self,
        file: &str,
        parent: Option<usize>,
        folder: &str,
        items: Vec<Item>,
        read: &dyn Fn(&str) -> Option<String>,
    ) -> usize {
        let at = self.0.len();
        self.0.push(Module { file: file.into(), parent, ..Module::default() });
        for item in items {
            if for_tests(attributes(&item)) {
                continue;
            }
            let Item::Mod(module) = item else {
                self.0[at].take(&item);
                continue;
            };
            let name = module.ident.to_string();
            let below = format!("{folder}/{name}");
            let child = match module.content {
                Some((_, items)) => self.add(file, Some(at), &below, items, read),
                None => {
                    let paths = [format!("{below}.rs"), format!("{below}/mod.rs")];
                    let found = paths.iter().find_map(|path| Some((path, parse(path, read)?)));
                    let Some((path, parsed)) = found else { continue };
                    self.add(path, Some(at), &below, parsed.items, read)
                }
            };
            self.0[at].children.insert(name, child);
        }
        at
    }

    /// The files that are compiled outside tests.
    pub(super) fn files(&self) -> BTreeSet<&str> {
        self.0.iter().map(|module| &*module.file).collect()
    }

    /// Which file imports which.
    pub(super) fn arrows(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut arrows: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (at, module) in self.0.iter().enumerate() {
            let to = arrows.entry(&module.file).or_default();
            for path in &module.paths {
                if let Some(Place::Item(end)) = self.resolve(at, path, DEPTH) {
                    to.insert(&self.0[end].file);
                }
            }
            for glob in &module.globs {
                if let Some(Place::Module(end)) = self.resolve(at, glob, DEPTH) {
                    to.insert(&self.0[end].file);
                }
            }
            to.remove(&*module.file);
        }
        arrows
    }

    /// Where a path ends that is written in module `at`; `None` if that is outside the crate.
    fn resolve(&self, at: usize, path: &[String], depth: usize) -> Option<Place> {
        let (first, rest) = path.split_first()?;
        let mut place = match &**first {
            "crate" => Place::Module(0),
            "self" => Place::Module(at),
            "super" => Place::Module(self.0[at].parent?),
            name => self.name(at, name, depth)?,
        };
        for name in rest {
            place = match (place, &**name) {
                (Place::Module(at), "super") => Place::Module(self.0[at].parent?),
                (Place::Module(at), "self") => Place::Module(at),
                // What a macro defines is not seen.
                (Place::Module(at), name) => self.name(at, name, depth).unwrap_or(Place::Item(at)),
                (item, _) => return Some(item),
            };
        }
        Some(place)
    }

    /// What a name means in a module.
    fn name(&self, at: usize, name: &str, depth: usize) -> Option<Place> {
        let (module, depth) = (&self.0[at], depth.checked_sub(1)?);
        if let Some(child) = module.children.get(name) {
            return Some(Place::Module(*child));
        }
        if module.items.contains(name) {
            return Some(Place::Item(at));
        }
        if let Some(path) =
            module.uses.get(name).filter(|path| path.first().is_none_or(|f| f != name))
        {
            return self.resolve(at, path, depth);
        }
        module.globs.iter().find_map(|glob| match self.resolve(at, glob, depth)? {
            Place::Module(from) if from != at => self.name(from, name, depth),
            _ => None,
        })
    }
}

impl Module {
    fn take(&mut self, item: &Item) {
        self.items.extend(name(item));
        self.visit_item(item);
    }

    fn import(&mut self, prefix: &[String], tree: &UseTree, private: bool) {
        let with = |name: &dyn ToString| [prefix, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.import(&with(&path.ident), &path.tree, private),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(prefix, tree, private);
                }
            }
            UseTree::Glob(_) => self.globs.push(prefix.into()),
            UseTree::Name(name) if name.ident == "self" => {
                self.bring(prefix.last().cloned().unwrap_or_default(), prefix.into(), private);
            }
            UseTree::Name(name) => self.bring(name.ident.to_string(), with(&name.ident), private),
            UseTree::Rename(rename) => {
                self.bring(rename.rename.to_string(), with(&rename.ident), private);
            }
        }
    }

    fn bring(&mut self, name: String, path: Vec<String>, private: bool) {
        if private {
            self.paths.push(path.clone());
        }
        self.uses.insert(name, path);
    }
}

impl<'a> Visit<'a> for Module {
    fn visit_item(&mut self, item: &'a Item) {
        if !for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'a ItemUse) {
        self.import(&[], &item.tree, matches!(item.vis, Visibility::Inherited));
    }

    fn visit_path(&mut self, path: &'a Path) {
        if path.leading_colon.is_none() {
            self.paths.push(path.segments.iter().map(|one| one.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'a syn::Macro) {
        self.visit_path(&call.path);
        in_tokens(call.tokens.clone(), &mut self.paths);
    }

    // `pub(in path)` names no import.
    fn visit_visibility(&mut self, _: &'a Visibility) {}

    fn visit_attribute(&mut self, _: &'a Attribute) {}
}

/// The paths among the tokens that a macro is given.
fn in_tokens(tokens: TokenStream, paths: &mut Vec<Vec<String>>) {
    let mut path: Vec<String> = Vec::new();
    let mut colons = 2;
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => {
                if colons != 2 {
                    paths.extend((path.len() > 1).then(|| std::mem::take(&mut path)));
                    path.clear();
                }
                path.push(ident.to_string());
                colons = 0;
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
            other => {
                paths.extend((path.len() > 1).then(|| std::mem::take(&mut path)));
                path.clear();
                colons = 2;
                if let TokenTree::Group(group) = other {
                    in_tokens(group.stream(), paths);
                }
            }
        }
    }
    paths.extend((path.len() > 1).then_some(path));
}

fn parse(path: &str, read: &dyn Fn(&str) -> Option<String>) -> Option<File> {
    syn::parse_file(&read(path)?).ok().filter(|file| !for_tests(&file.attrs))
}

fn for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|one| {
        let syn::Meta::List(list) = &one.meta else { return false };
        list.path.is_ident("cfg") && is_cfg_test(&format!("cfg({})", list.tokens))
    })
}

fn name(item: &Item) -> Option<String> {
    Some(match item {
        Item::Const(it) => it.ident.to_string(),
        Item::Enum(it) => it.ident.to_string(),
        Item::Fn(it) => it.sig.ident.to_string(),
        Item::Macro(it) => it.ident.as_ref()?.to_string(),
        Item::Static(it) => it.ident.to_string(),
        Item::Struct(it) => it.ident.to_string(),
        Item::Trait(it) => it.ident.to_string(),
        Item::TraitAlias(it) => it.ident.to_string(),
        Item::Type(it) => it.ident.to_string(),
        Item::Union(it) => it.ident.to_string(),
        _ => return None,
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(it) => &it.attrs,
        Item::Enum(it) => &it.attrs,
        Item::Fn(it) => &it.attrs,
        Item::Impl(it) => &it.attrs,
        Item::Macro(it) => &it.attrs,
        Item::Mod(it) => &it.attrs,
        Item::Static(it) => &it.attrs,
        Item::Struct(it) => &it.attrs,
        Item::Trait(it) => &it.attrs,
        Item::Type(it) => &it.attrs,
        Item::Use(it) => &it.attrs,
        _ => &[],
    }
}
