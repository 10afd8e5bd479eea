package provider

import (
	"context"
	"fmt"
	"os"

	"github.com/anthropics/anthropic-sdk-go/v2/foundry"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
)

// foundry asks Microsoft Foundry. Its client is made anew for each request: it is a few options, and a key that was not set
// yet may be set by then.
func (t *Transport) foundry() (func(context.Context) ([]option.RequestOption, error), error) {
	s := t.settings
	return func(context.Context) ([]option.RequestOption, error) {
		cfg := foundry.ClientConfig{APIKey: s.Key, Resource: s.Resource, BaseURL: s.URL}
		if s.Tokens != nil {
			cfg.AzureADTokenProvider = s.token
		} else if s.orVariable("key", s.Key) == "" {
			return nil, s.noCredentials(errNothingFound)
		}
		var more []option.RequestOption
		if address := s.foundryAddress(); address != "" {
			// The SDK takes what a variable names beside it for a contradiction; what was named here comes first.
			more = append(more, option.WithBaseURL(address))
			if os.Getenv("ANTHROPIC_FOUNDRY_RESOURCE") != "" || os.Getenv("ANTHROPIC_FOUNDRY_BASE_URL") != "" {
				cfg.Resource, cfg.BaseURL = "", ""
			}
		}
		client, err := foundry.NewClient(cfg, more...)
		if err != nil {
			return nil, &Error{Provider: s.Provider, Reason: ErrSettings, Err: err, hint: "name a resource or a URL, and unset one of ANTHROPIC_FOUNDRY_RESOURCE and ANTHROPIC_FOUNDRY_BASE_URL"}
		}
		return client.Options, nil
	}, nil
}

// foundryAddress is the address that the settings name; empty when they leave it to the variables.
func (s Settings) foundryAddress() string {
	if s.Resource != "" {
		return fmt.Sprintf("https://%s.services.ai.azure.com/anthropic/", s.Resource)
	}
	return s.URL
}

// token fetches a token within a bounded time.
func (s Settings) token(ctx context.Context) (string, error) {
	return fetched(ctx, s, func(context.Context) (string, error) {
		own, cancel := context.WithTimeout(endOf{ctx}, credentialTime)
		defer cancel()
		token, err := s.Tokens(own)
		if err == nil && token == "" {
			err = errNothingFound
		}
		return token, err
	})
}
