//! A file of its own for each test.
use std::{
    env, fs,
    path::PathBuf,
    process,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
};
use tr_integrity::{conformance::Subject, sqlite::Sqlite, store::SessionStore};

/// A file that is removed in the end.
pub(crate) struct TempFile(PathBuf);

impl TempFile {
    pub(crate) fn new() -> Self {
        static FILES: AtomicU32 = AtomicU32::new(0);
        let name = format!("tr-sessions-{}-{}.db", process::id(), FILES.fetch_add(1, Relaxed));
        let file = Self(env::temp_dir().join(name));
        file.remove();
        file
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.clone()
    }

    fn remove(&self) {
        for end in ["", "-wal", "-shm"] {
            drop(fs::remove_file(format!("{}{end}", self.0.display())));
        }
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Two processes' handles of one file.
pub(crate) struct InFile {
    file: TempFile,
    stores: Mutex<[Sqlite; 2]>,
}

async fn both(file: &TempFile) -> [Sqlite; 2] {
    [Sqlite::open(file.path()).await.unwrap(), Sqlite::open(file.path()).await.unwrap()]
}

impl InFile {
    pub(crate) async fn new() -> Self {
        let file = TempFile::new();
        let stores = both(&file).await.into();
        Self { file, stores }
    }
}

impl Subject for InFile {
    fn store(&self) -> Arc<dyn SessionStore> {
        Arc::new(self.stores.lock().unwrap()[0].clone())
    }

    fn another(&self) -> Arc<dyn SessionStore> {
        Arc::new(self.stores.lock().unwrap()[1].clone())
    }

    async fn restart(&self) -> bool {
        let before = self.stores.lock().unwrap().clone();
        for store in before {
            store.close().await;
        }
        let after = both(&self.file).await;
        *self.stores.lock().unwrap() = after;
        true
    }
}
