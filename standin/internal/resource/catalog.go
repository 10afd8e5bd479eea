package resource

// The sizes of context windows, and the most tokens of an answer.
const (
	largeWindow = 1_000_000
	smallWindow = 200_000

	largeOutput = 128_000
	smallOutput = 64_000
)

// unknownDeclared stands for a day of deprecation that is not known.
const unknownDeclared = "2026-11-09"

var (
	// The levels of effort, by what came with which models.
	effortsFirst = []string{"low", "medium", "high"}
	effortsMax   = []string{"low", "medium", "high", "max"}
	effortsAll   = []string{"low", "medium", "high", "xhigh", "max"}

	// The types of thinking. A model refuses those that it does not have with a 400.
	thinkByBudget  = []string{"enabled", "disabled"}
	thinkEither    = []string{"enabled", "adaptive", "disabled"}
	thinkAdaptive  = []string{"adaptive", "disabled"}
	thinkAlways    = []string{"adaptive"}
	thinkInBetween = []string{"adaptive", "between_tools"}
)

// claudeModel is a row of the table of Claude models.
type claudeModel struct {
	id, alias, name, line         string
	released, deprecated, retires string // dates; "" when there is none
	window, output                int
	efforts, thinking             []string
}

// claudeModels are the models that a key can use, the latest first. Names, lines and ends of life are those of the Go SDK
// v2.15.0, days of release those of its change log. The 1M window begins with Opus 4.6 and Sonnet 4.6.
var claudeModels = []claudeModel{
	{"claude-fable-5-2", "", "Claude Fable 5.2", "fable", "2026-11-09", "", "", largeWindow, largeOutput, effortsAll, thinkAlways},
	{"claude-mythos-5-2", "", "Claude Mythos 5.2", "mythos", "2026-11-09", "", "", largeWindow, largeOutput, effortsAll, thinkAlways},
	{"claude-haiku-5-5", "", "Claude Haiku 5.5", "haiku", "2026-10-07", "", "", smallWindow, smallOutput, effortsAll, thinkAdaptive},
	{"claude-sonnet-5-5", "", "Claude Sonnet 5.5", "sonnet", "2026-09-28", "", "", largeWindow, largeOutput, effortsAll, thinkInBetween},
	{"claude-opus-5-5", "", "Claude Opus 5.5", "opus", "2026-09-22", "", "", largeWindow, largeOutput, effortsAll, thinkAlways},
	{"claude-fable-5-1", "", "Claude Fable 5.1", "fable", "2026-09-01", "", "", largeWindow, largeOutput, effortsAll, thinkAlways},
	{"claude-mythos-5-1", "", "Claude Mythos 5.1", "mythos", "2026-09-01", "", "", largeWindow, largeOutput, effortsAll, thinkAlways},
	{"claude-opus-5", "", "Claude Opus 5", "opus", "2026-07-24", "", "", largeWindow, largeOutput, effortsAll, thinkAdaptive},
	{"claude-sonnet-5", "", "Claude Sonnet 5", "sonnet", "2026-06-30", "", "", largeWindow, largeOutput, effortsAll, thinkAdaptive},
	{"claude-fable-5", "", "Claude Fable 5", "fable", "2026-06-09", "", "", largeWindow, largeOutput, effortsAll, thinkAlways},
	{"claude-mythos-5", "", "Claude Mythos 5", "mythos", "2026-06-09", "", "", largeWindow, largeOutput, effortsAll, thinkAlways},
	{"claude-opus-4-8", "", "Claude Opus 4.8", "opus", "2026-05-28", "", "", largeWindow, largeOutput, effortsAll, thinkAdaptive},
	{"claude-opus-4-7", "", "Claude Opus 4.7", "opus", "2026-04-16", "", "", largeWindow, largeOutput, effortsAll, thinkAdaptive},
	{"claude-sonnet-4-6", "", "Claude Sonnet 4.6", "sonnet", "2026-02-17", "", "", largeWindow, smallOutput, effortsMax, thinkEither},
	{"claude-opus-4-6", "", "Claude Opus 4.6", "opus", "2026-02-05", "", "", largeWindow, largeOutput, effortsMax, thinkEither},
	{"claude-opus-4-5-20251101", "claude-opus-4-5", "Claude Opus 4.5", "opus", "2025-11-24", unknownDeclared, "2027-01-22", smallWindow, smallOutput, effortsFirst, thinkByBudget},
	{"claude-haiku-4-5-20251001", "claude-haiku-4-5", "Claude Haiku 4.5", "haiku", "2025-10-15", "", "", smallWindow, smallOutput, nil, thinkByBudget},
	{"claude-sonnet-4-5-20250929", "claude-sonnet-4-5", "Claude Sonnet 4.5", "sonnet", "2025-09-29", unknownDeclared, "2026-11-30", smallWindow, smallOutput, nil, thinkByBudget},
}

// openModels are models of the OpenAI Go SDK v3.99.0. The days in their names are their creation; of the others it is
// made up.
var openModels = []openModel{
	{"gpt-5.6-sol", "model", 1_788_220_800, "system", nil},
	{"gpt-5.6-terra", "model", 1_788_220_800, "system", nil},
	{"gpt-5.6-luna", "model", 1_788_220_800, "system", nil},
	{"gpt-5.5", "model", 1_776_902_400, "system", nil},
	{"gpt-5.5-2026-04-23", "model", 1_776_902_400, "system", nil},
	{"gpt-5.4", "model", 1_773_705_600, "system", nil},
	{"gpt-5.4-mini", "model", 1_773_705_600, "system", nil},
	{"gpt-5.4-mini-2026-03-17", "model", 1_773_705_600, "system", nil},
	{"gpt-5.4-nano", "model", 1_773_705_600, "system", nil},
	{"gpt-5.4-nano-2026-03-17", "model", 1_773_705_600, "system", nil},
	{"gpt-4o", "model", 1_715_558_400, "system", nil},
	{"gpt-4o-2024-08-06", "model", 1_722_902_400, "system", nil},
	{"gpt-4o-mini", "model", 1_721_260_800, "system", nil},
	{"gpt-4o-mini-2024-07-18", "model", 1_721_260_800, "system", nil},
}
