package provider

import (
	"context"
	"errors"
	"net/http"

	anthropicaws "github.com/anthropics/anthropic-sdk-go/v2/aws"
	"github.com/anthropics/anthropic-sdk-go/v2/bedrock"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
)

var errNothingFound = errors.New("nothing was found")

// bedrock asks bedrock-runtime. The SDK itself takes AWS_BEARER_TOKEN_BEDROCK before all credentials.
func (t *Transport) bedrock() func(context.Context) ([]option.RequestOption, error) {
	s := t.settings
	more := []option.RequestOption(nil)
	if s.URL != "" {
		more = append(more, option.WithBaseURL(s.URL))
	}
	if s.Key != "" {
		// Whatever AWS_BEARER_TOKEN_BEDROCK holds, the key that was named is sent.
		t.client.Transport = bearing{s.Key, s.Base}
	}
	if s.Key != "" || s.AWSConfig == nil && s.orVariable("key", "") != "" {
		key := s.orVariable("key", s.Key)
		cfg := aws.Config{
			Region: s.region(), BearerAuthTokenProvider: bedrock.NewStaticBearerTokenProvider(key),
			AuthSchemePreference: []string{"httpBearerAuth"},
		}
		options := append([]option.RequestOption{bedrock.WithConfig(cfg)}, more...)
		return func(context.Context) ([]option.RequestOption, error) { return options, nil }
	}
	made := held[[]option.RequestOption]{fetch: func(ctx context.Context) ([]option.RequestOption, error) {
		cfg, err := s.awsConfig(ctx)
		if err != nil {
			return nil, err
		}
		if cfg.Credentials == nil && cfg.BearerAuthTokenProvider == nil {
			return nil, s.noCredentials(errNothingFound)
		}
		if cfg.Credentials != nil {
			cfg.Credentials = inTime{s, cfg.Credentials}
		}
		return append([]option.RequestOption{bedrock.WithConfig(cfg)}, more...), nil
	}}
	return func(ctx context.Context) ([]option.RequestOption, error) { return fetched(ctx, s, made.get) }
}

// platform asks bedrock-mantle and the Claude Platform on AWS, whose clients are made alike.
func (t *Transport) platform() func(context.Context) ([]option.RequestOption, error) {
	s := t.settings
	key := s.Key
	if key == "" && s.Profile == "" {
		key = s.orVariable("key", "")
	}
	if key != "" {
		return func(ctx context.Context) ([]option.RequestOption, error) {
			return s.platformOptions(ctx, key, aws.Credentials{})
		}
	}
	provider := held[aws.CredentialsProvider]{fetch: func(ctx context.Context) (aws.CredentialsProvider, error) {
		cfg, err := s.awsConfig(ctx)
		if err == nil && cfg.Credentials == nil {
			err = s.noCredentials(errNothingFound)
		}
		if err != nil {
			return nil, err
		}
		return inTime{s, cfg.Credentials}, nil
	}}
	return func(ctx context.Context) ([]option.RequestOption, error) {
		p, err := fetched(ctx, s, provider.get)
		if err != nil {
			return nil, err
		}
		credentials, err := p.Retrieve(ctx)
		if err != nil {
			return nil, err
		}
		return s.platformOptions(ctx, "", credentials)
	}
}

func (s Settings) platformOptions(ctx context.Context, key string, c aws.Credentials) ([]option.RequestOption, error) {
	if s.Provider == AWS {
		client, err := anthropicaws.NewClient(ctx, anthropicaws.ClientConfig{
			APIKey: key, AWSAccessKey: c.AccessKeyID, AWSSecretAccessKey: c.SecretAccessKey, AWSSessionToken: c.SessionToken,
			AWSRegion: s.region(), WorkspaceID: s.workspace(), BaseURL: s.URL,
		})
		if err != nil {
			return nil, &Error{Provider: s.Provider, Reason: ErrSettings, Err: err}
		}
		return client.Options, nil
	}
	client, err := bedrock.NewMantleClient(ctx, bedrock.MantleClientConfig{
		APIKey: key, AWSAccessKey: c.AccessKeyID, AWSSecretAccessKey: c.SecretAccessKey, AWSSessionToken: c.SessionToken,
		AWSRegion: s.region(), BaseURL: s.URL,
	})
	if err != nil {
		return nil, &Error{Provider: s.Provider, Reason: ErrSettings, Err: err}
	}
	return client.Options, nil
}

// awsConfig is what AWS's SDK finds in variables and files. Credentials themselves are retrieved later.
func (s Settings) awsConfig(ctx context.Context) (aws.Config, error) {
	if s.AWSConfig != nil {
		cfg := s.AWSConfig.Copy()
		cfg.Region = s.region()
		return cfg, nil
	}
	from := []func(*config.LoadOptions) error{config.WithRegion(s.region())}
	if s.Profile != "" {
		from = append(from, config.WithSharedConfigProfile(s.Profile))
	}
	cfg, err := config.LoadDefaultConfig(ctx, from...)
	if err != nil {
		return cfg, s.noCredentials(err)
	}
	return cfg, nil
}

// inTime retrieves AWS credentials within a bounded time.
type inTime struct {
	settings Settings
	from     aws.CredentialsProvider
}

// Retrieve implements aws.CredentialsProvider.
func (p inTime) Retrieve(ctx context.Context) (aws.Credentials, error) {
	return fetched(ctx, p.settings, p.from.Retrieve)
}

// bearing sends a key, whatever credential the request carries.
type bearing struct {
	key  string
	base http.RoundTripper
}

// RoundTrip implements http.RoundTripper. The request is a copy that the SDK made.
func (b bearing) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+b.key)
	return b.base.RoundTrip(req)
}
