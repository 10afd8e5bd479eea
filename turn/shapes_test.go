package turn_test

import (
	"fmt"

	"github.com/anthropics/anthropic-sdk-go/v2"

	"holdfast/turn"
)

// fallbacks is a chain of the API's own.
func fallbacks(models ...string) anthropic.BetaFallbacksParamUnion {
	var list []anthropic.BetaFallbackParam
	for _, m := range models {
		list = append(list, anthropic.BetaFallbackParam{Model: anthropic.Model(m)})
	}
	return anthropic.BetaFallbacksParamUnion{OfBetaFallbackArray: list}
}

func described(n turn.Next) string { return fmt.Sprintf("%v %s %d", n.Action, n.Model, n.MaxTokens) }
