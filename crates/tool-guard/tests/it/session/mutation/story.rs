//! A made-up session, the same in every form: what is said, called and answered.
use fastrand::Rng;

/// What the user wants, and what is done until it is answered.
pub(crate) struct Turn {
    pub(crate) prompt: String,
    pub(crate) has_image: bool,
    pub(crate) steps: Vec<Step>,
    pub(crate) answer: String,
}

/// An answer of the model's that calls, perhaps several tools at once.
pub(crate) struct Step {
    pub(crate) thought: Option<String>,
    pub(crate) says: Option<String>,
    pub(crate) calls: Vec<Call>,
}

pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: &'static str,
    pub(crate) argument: String,
    pub(crate) result: String,
    pub(crate) is_error: bool,
}

/// Makes texts and ids of which no two are alike.
pub(crate) struct Words {
    pub(crate) random: Rng,
    next: u32,
}

impl Words {
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: Rng::with_seed(seed), next: 10_000 }
    }

    fn number(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    pub(crate) fn text(&mut self, kind: &str) -> String {
        let words =
            ["order", "café", "\"quoted\"", "a\\b", "line\nbreak", "価格", "🙂", "tab\there"];
        let word = words[self.random.usize(0..words.len())];
        format!("{kind} mark{}k {word} end", self.number())
    }

    pub(crate) fn id(&mut self) -> String {
        format!("call_{}x{}", self.number(), self.random.u16(..))
    }

    fn call(&mut self) -> Call {
        let names = ["read_file", "pay", "search-web", "bash"];
        Call {
            id: self.id(),
            name: names[self.random.usize(0..names.len())],
            argument: self.text("argument"),
            result: self.text("result"),
            is_error: self.random.u8(0..6) == 0,
        }
    }

    fn step(&mut self) -> Step {
        let several = [1, 1, 2, 3][self.random.usize(0..4)];
        Step {
            thought: (self.random.u8(0..3) == 0).then(|| self.text("thought")),
            says: self.random.bool().then(|| self.text("says")),
            calls: (0..several).map(|_| self.call()).collect(),
        }
    }

    fn turn(&mut self) -> Turn {
        Turn {
            prompt: self.text("prompt"),
            has_image: self.random.u8(0..5) == 0,
            steps: (0..self.random.usize(0..3)).map(|_| self.step()).collect(),
            answer: self.text("answer"),
        }
    }

    pub(crate) fn story(&mut self) -> Vec<Turn> {
        let mut turns: Vec<_> = (0..self.random.usize(2..5)).map(|_| self.turn()).collect();
        turns[0].steps.push(self.step());
        turns
    }
}
