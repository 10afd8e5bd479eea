package endpoint

const (
	mega = 1_000_000

	// The limits that the overview of the Claude API gives for requests through partners (2026-08).
	bedrockBody = 20 * mega
	googleBody  = 30 * mega
)

var messagesOnly = []string{"/v1/messages"}
var messagesAndCount = []string{"/v1/messages", "/v1/messages/count_tokens"}

// table is ordered: what the SDK asks first, then by how often it is met. Servers that are known by a port alone are listed
// only where that port is nobody else's habit: llama.cpp (8080) and vLLM (8000) are not.
var table = []Endpoint{
	{
		Name: "anthropic", Title: "Claude API", Claude: true, Base: "https://api.anthropic.com", Hosts: []string{"api.anthropic.com"},
		Example: "claude-sonnet-5-5", AsOf: "2026-11-24",
	},
	{
		Name: "bedrock", Title: "Amazon Bedrock", Cloud: true, Claude: true, Renames: true, MaxBody: bedrockBody, Only: messagesOnly,
		Example: "anthropic.claude-sonnet-4-5-20250929-v1:0",
		Lacks:   []Feature{CountTokens, Batches, ModelList, Files, Fallbacks, LimitHeaders},
		Bites: []string{
			"a throttle (429) names no wait, so our own is taken",
			"it is an exception to what anthropic-version 2026-10-21 rejects",
		},
		AsOf: "2026-11-24",
	},
	{
		Name: "bedrock-mantle", Title: "Amazon Bedrock (mantle)", Cloud: true, Claude: true, Renames: true, MaxBody: bedrockBody, Only: messagesAndCount,
		Lacks: []Feature{Batches, ModelList, Files, Fallbacks, LimitHeaders},
		Bites: []string{
			"a throttle (429) names no wait, so our own is taken",
			"which of its two endpoints AWS recommends, and the quotas of each, differ from page to page",
		},
		AsOf: "2026-11-24",
	},
	{
		Name: "aws", Title: "Claude Platform on AWS", Cloud: true, Claude: true, Example: "claude-sonnet-5-5",
		Bites: []string{"whether it has server-side fallbacks is told in two ways"},
		AsOf:  "2026-11-24",
	},
	{
		Name: "vertex", Title: "Google Vertex AI", Cloud: true, Claude: true, Renames: true, MaxBody: googleBody, Only: messagesAndCount,
		Lacks: []Feature{Batches, ModelList, Files, Fallbacks, LimitHeaders},
		Bites: []string{
			"a 429 RESOURCE_EXHAUSTED may be quota, shared capacity or growth; Google advises at most 2 retries and a first wait of 1s or more",
			"an overload can come as an error event inside a 200",
		},
		AsOf: "2026-11-24",
	},
	{
		Name: "google-cloud", Title: "Claude on Google Cloud", Cloud: true, Claude: true, Example: "claude-sonnet-5-5",
		Lacks: []Feature{Fallbacks},
		AsOf:  "2026-11-24",
	},
	{
		Name: "foundry", Title: "Microsoft Foundry", Cloud: true, Claude: true, Auth: APIKey,
		Base: "https://{resource}.services.ai.azure.com/anthropic", Hosts: []string{".services.ai.azure.com"},
		Lacks: []Feature{Batches, ModelList, Fallbacks, LimitHeaders},
		Bites: []string{
			"the model is the name of your deployment, which is the model's own unless you chose another",
			"files and skills need a deployment hosted on Anthropic",
		},
		AsOf: "2026-11-24",
	},
	{
		Name: "openrouter", Title: "OpenRouter", Renames: true, Base: "https://openrouter.ai/api", Hosts: []string{"openrouter.ai"}, Auth: Bearer,
		Lacks: []Feature{Betas},
		Bites: []string{"an error can come inside a 200 stream; 402 means that the credits are used up; a wait stands on some 429 and 503 only"},
		AsOf:  "2026-08",
	},
	{
		Name: "deepseek", Title: "DeepSeek", Renames: true, Base: "https://api.deepseek.com/anthropic", Hosts: []string{"api.deepseek.com"}, Auth: APIKey,
		Lacks: []Feature{Betas, ContainerAndMCP, Metadata},
		Bites: []string{
			"it answers for Claude models by silently taking its own: claude-opus* becomes deepseek-v4-pro, any other claude* deepseek-flash",
			"it ignores anthropic-version; 402 means that the balance is used up",
		},
		AsOf: "2026-08",
	},
	{
		Name: "moonshot", Title: "Moonshot Kimi", Renames: true, Example: "kimi-k3", Base: "https://api.moonshot.ai/anthropic",
		Hosts: []string{"api.moonshot.ai", "api.moonshot.cn"}, Auth: Bearer, Lacks: []Feature{Betas},
		Bites: []string{"the effort is set by output_config"},
		AsOf:  "2026-08",
	},
	{
		Name: "zai", Title: "Z.ai GLM", Renames: true, Base: "https://api.z.ai/api/anthropic", Hosts: []string{"api.z.ai"}, Auth: Bearer,
		Lacks: []Feature{Betas}, AsOf: "2026-08",
	},
	{
		Name: "minimax", Title: "MiniMax", Renames: true, Base: "https://api.minimax.io/anthropic", Hosts: []string{"api.minimax.io", "api.minimaxi.com"},
		Lacks: []Feature{Betas},
		Bites: []string{"temperature must be above 0 and at most 1; some of its models take no images or documents"},
		AsOf:  "2026-08",
	},
	{
		Name: "ollama-cloud", Title: "Ollama cloud", Renames: true, Base: "https://ollama.com", Hosts: []string{"ollama.com"}, Auth: Bearer,
		Lacks: []Feature{CountTokens, Batches, Betas, ToolChoice, Metadata, CacheControl, Citations, Documents, LimitHeaders},
		Bites: []string{"it rejects an anthropic-version before 2023-06-01"},
		AsOf:  "2026-10-29",
	},
	{
		Name: "ollama", Title: "Ollama", Renames: true, Base: "http://localhost:11434", Hosts: []string{"localhost:11434", "127.0.0.1:11434", "[::1]:11434"},
		Lacks: []Feature{CountTokens, Batches, Betas, ToolChoice, Metadata, CacheControl, Citations, Documents, LimitHeaders},
		Bites: []string{"its stop reasons are end_turn, max_tokens and tool_use alone"},
		AsOf:  "2026-08-21",
	},
	{
		Name: "lmstudio", Title: "LM Studio", Renames: true, Base: "http://localhost:1234", Hosts: []string{"localhost:1234", "127.0.0.1:1234", "[::1]:1234"},
		Only: messagesOnly, Lacks: []Feature{CountTokens, Batches, ModelList, Files, Betas}, AsOf: "2026-08",
	},
}
