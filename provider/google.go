package provider

import (
	"context"
	"net/http"
	"os"

	"github.com/anthropics/anthropic-sdk-go/v2/googlecloud"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/vertex"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
)

const cloudScope = "https://www.googleapis.com/auth/cloud-platform"

// vertex asks Vertex AI. The SDK's client is made once: its token source fetches nothing by then.
func (t *Transport) vertex() func(context.Context) ([]option.RequestOption, error) {
	s := t.settings
	tokens := &tokens{settings: s}
	options := []option.RequestOption{vertex.WithCredentials(context.Background(), s.region(), s.project(), &google.Credentials{TokenSource: tokens})}
	if s.URL != "" {
		options = append(options, option.WithBaseURL(s.URL))
	}
	return tokens.before(options)
}

// googleCloud asks Claude on Google Cloud.
func (t *Transport) googleCloud() (func(context.Context) ([]option.RequestOption, error), error) {
	s := t.settings
	tokens := &tokens{settings: s}
	client, err := googlecloud.NewClient(context.Background(), googlecloud.ClientConfig{
		Project: s.project(), Location: s.Region, WorkspaceID: s.workspace(), BaseURL: s.URL, TokenSource: tokens,
	})
	if err != nil {
		return nil, &Error{Provider: s.Provider, Reason: ErrSettings, Err: err, hint: "name its project and its workspace"}
	}
	return tokens.before(client.Options), nil
}

// tokens are those of Google. The source knows no context, so a token is fetched before the SDK asks for it, by somebody who
// can be left behind.
type tokens struct {
	settings Settings
	source   held[oauth2.TokenSource]
}

// before returns options once there is a token.
func (k *tokens) before(options []option.RequestOption) func(context.Context) ([]option.RequestOption, error) {
	k.source.fetch = func(context.Context) (oauth2.TokenSource, error) { return k.find() }
	return func(ctx context.Context) ([]option.RequestOption, error) {
		if err := k.wait(ctx); err != nil {
			return nil, err
		}
		return options, nil
	}
}

// wait fetches a token, or finds that there is a good one. A fetch that takes longer than the caller or its time goes on by
// itself until Google's own client gives up, so that the next call finds what it brought.
func (k *tokens) wait(ctx context.Context) error {
	_, err := fetched(ctx, k.settings, func(context.Context) (*oauth2.Token, error) { return k.Token() })
	return err
}

// Token implements oauth2.TokenSource.
func (k *tokens) Token() (*oauth2.Token, error) {
	source, err := k.source.get(context.Background())
	if err != nil {
		return nil, err
	}
	token, err := calmly(source.Token)
	if err != nil {
		return nil, k.settings.noCredentials(err)
	}
	return token, nil
}

// find looks for credentials where the settings say.
func (k *tokens) find() (oauth2.TokenSource, error) {
	s := k.settings
	if s.GoogleTokens != nil {
		return oauth2.ReuseTokenSource(nil, s.GoogleTokens), nil
	}
	ctx := context.WithValue(context.Background(), oauth2.HTTPClient, &http.Client{Timeout: credentialTime})
	if s.Credentials == "" {
		found, err := google.FindDefaultCredentials(ctx, cloudScope)
		if err != nil {
			return nil, s.noCredentials(err)
		}
		return found.TokenSource, nil
	}
	text, err := os.ReadFile(s.Credentials)
	if err != nil {
		return nil, s.noCredentials(err)
	}
	found, err := google.CredentialsFromJSON(ctx, text, cloudScope) //nolint:staticcheck // whoever names the file vouches for it
	if err != nil {
		return nil, s.noCredentials(errNotCredentials)
	}
	return found.TokenSource, nil
}
