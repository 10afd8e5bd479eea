package holdfast

// What a pace knows of the output of its calls before it is produced.

// UsualOutput, as the output of an estimate, says that nobody knows it beforehand: a [Pace] takes what its calls have
// usually produced. That is right for upstreams that count tokens as they are produced, whatever max_tokens allows, as
// Anthropic does; where the maximum is charged at once, as by OpenAI, the maximum is the estimate.
const UsualOutput = -1

const (
	// firstOutput is what a pace expects before it has seen any answer: a few paragraphs, which the first usage corrects.
	firstOutput = 256
	// outputMemory is how many calls the mean of the output remembers: enough to be calm, few enough to follow a
	// change of work within minutes. It is a mean and not a high quantile because what counts is the sum of many calls,
	// which a quantile overstates. Measured, with 60 workers and answers of 2,000 tokens against 80,000 a minute: 2 requests
	// of 1,235 are throttled at 98.7 % of the limit; 7,737 of 9,015 where output is taken for nothing.
	outputMemory = 32
)

// output is a mean that forgets. The zero value has seen nothing.
type output struct {
	mean float64
	seen int // up to outputMemory
}

func (o *output) add(n int64) {
	o.seen = min(o.seen+1, outputMemory)
	o.mean += (float64(n) - o.mean) / float64(o.seen)
}

func (o *output) expected() int64 {
	if o.seen == 0 {
		return firstOutput
	}
	return int64(o.mean + 0.5)
}

// Expect returns what is to be taken for an estimate of which the output is [UsualOutput]: the same with the mean of what
// calls settled with [Pace.Settle], or made under a [Policy], have produced lately, 256 before the first. Others come back
// as they are. It never takes anything: give what it returns to [Pace.Allow] or [Pace.Wait], and to Settle or Refund afterwards.
func (p *Pace) Expect(need Tokens) Tokens {
	if need.Output < 0 {
		p.mu.Lock()
		need.Output = int(p.output.expected())
		p.mu.Unlock()
	}
	return need
}

// expect is Expect for the amounts of a call of unknown output, whatever another pace expected of it.
func (p *Pace) expect(want amounts) amounts {
	p.mu.Lock()
	want[outputTokens] = p.output.expected()
	p.mu.Unlock()
	want[allTokens] = min(want[inputTokens], maxCost) + want[outputTokens]
	return want
}

// produced tells what a call that came to its end has produced.
func (p *Pace) produced(n int64) {
	if n <= 0 {
		return // not known
	}
	p.mu.Lock()
	p.output.add(min(n, maxCost))
	p.mu.Unlock()
}
