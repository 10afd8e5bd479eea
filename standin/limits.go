package standin

// Limits are rate limits as the providers enforce them: buckets that refill
// continuously, for each key and model group.
type Limits struct {
	// Tier takes the public numbers of a tier: start, build or scale. Fields that
	// are set besides replace its numbers. Default: no tier.
	Tier Tier `yaml:"tier"`
	// RequestsPerMinute, InputTokensPerMinute and OutputTokensPerMinute are what a
	// bucket holds and gains in a minute. 0: that of the tier, or no limit.
	RequestsPerMinute     int `yaml:"requests_per_minute"`
	InputTokensPerMinute  int `yaml:"input_tokens_per_minute"`
	OutputTokensPerMinute int `yaml:"output_tokens_per_minute"`
	// CountTokensPerMinute is the pool of requests of count_tokens. 0: that of the
	// tier, or no limit.
	CountTokensPerMinute int `yaml:"count_tokens_per_minute"`
	// Concurrent is how many requests of a key may be open at once. 0: no limit.
	Concurrent int `yaml:"concurrent"`
	// Growth is the acceleration limit: by how much the requests of a minute may
	// exceed those of the minute before, as a factor such as 1.5. 0: no limit.
	Growth float64 `yaml:"growth"`
}

// Tier is a usage tier of the Claude API.
type Tier string

// The tiers with public numbers.
const (
	TierStart Tier = "start"
	TierBuild Tier = "build"
	TierScale Tier = "scale"
)
