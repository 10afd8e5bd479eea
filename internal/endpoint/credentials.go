package endpoint

import (
	"path/filepath"
	"runtime"
	"slices"
)

// Surroundings are what a process finds around it, for looking without asking a network.
type Surroundings struct {
	// Env is os.Getenv.
	Env func(name string) string
	// Exists reports whether there is a file.
	Exists func(path string) bool
	// Home is the user's folder; empty: unknown.
	Home string
}

// awsVariables are what the AWS SDK takes credentials, or a way to them, from.
var awsVariables = []string{
	"AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE",
	"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
}

// keyVariables hold a key that the SDK's client of a provider takes when it is given none.
var keyVariables = map[string][]string{
	"bedrock":        {"AWS_BEARER_TOKEN_BEDROCK"},
	"bedrock-mantle": {"AWS_BEARER_TOKEN_BEDROCK", "ANTHROPIC_AWS_API_KEY"},
	"aws":            {"ANTHROPIC_AWS_API_KEY"},
	"foundry":        {"ANTHROPIC_FOUNDRY_API_KEY"},
}

// KeyVariables returns the names of the variables that hold a key of the provider, first come, first served. It never reads
// them.
func KeyVariables(provider string) []string { return slices.Clone(keyVariables[provider]) }

// Missing returns what a provider without a key and a file of credentials of its own lacks here; empty when something is
// found. On a machine of the cloud itself, credentials can come from the machine, which cannot be seen without asking it.
func (s Surroundings) Missing(provider string) string {
	for _, name := range keyVariables[provider] {
		if s.Env(name) != "" {
			return ""
		}
	}
	switch provider {
	case "bedrock", "bedrock-mantle", "aws":
		if s.aws() {
			return ""
		}
		return "there are no AWS credentials here (AWS_ACCESS_KEY_ID, AWS_PROFILE, ~/.aws) and no " + keyVariables[provider][0] + "; only a role of the machine is left"
	case "vertex", "google-cloud":
		if s.Env("GOOGLE_APPLICATION_CREDENTIALS") != "" || s.Exists(s.gcloud()) {
			return ""
		}
		return "there are no Google credentials here (GOOGLE_APPLICATION_CREDENTIALS, gcloud auth application-default login); only an account of the machine is left"
	case "foundry":
		return "it has no key, and ANTHROPIC_FOUNDRY_API_KEY is not set"
	}
	return ""
}

func (s Surroundings) aws() bool {
	for _, name := range awsVariables {
		if s.Env(name) != "" {
			return true
		}
	}
	for variable, file := range map[string]string{"AWS_SHARED_CREDENTIALS_FILE": "credentials", "AWS_CONFIG_FILE": "config"} {
		path := s.Env(variable)
		if path == "" && s.Home != "" {
			path = filepath.Join(s.Home, ".aws", file)
		}
		if path != "" && s.Exists(path) {
			return true
		}
	}
	return false
}

// gcloud is where that command keeps the credentials that it makes for programs.
func (s Surroundings) gcloud() string {
	const name = "application_default_credentials.json"
	if runtime.GOOS == "windows" {
		return filepath.Join(s.Env("APPDATA"), "gcloud", name)
	}
	return filepath.Join(s.Home, ".config", "gcloud", name)
}
