package wire

import "strings"

// rule says what a provider's own word means.
type rule struct {
	// from is whose word it is.
	from  string
	fault Fault
	// status is what the word carries over HTTP. It stands in for the real
	// status where there is none: inside a 200.
	status int
	// weak words repeat what a status says: over HTTP the status wins.
	weak bool
}

// codeRules reads error.code and error.details.error_code. Only codes that say
// more than their type and status are listed. A code in the place of a type
// means the same.
var codeRules = map[string]rule{
	"ramp_limit_exceeded":                     {from: "anthropic", fault: FaultRamp, status: 429},
	"enforced_spend_limit_reached":            {from: "anthropic", fault: FaultSpend, status: 429},
	"contract_spend_limit_reached":            {from: "anthropic", fault: FaultSpend, status: 429},
	"linked_organization_spend_limit_reached": {from: "anthropic", fault: FaultSpend, status: 402},
	"linked_organization_billing_unavailable": {from: "anthropic", fault: FaultSpend, status: 402},
	"cmek_key_unreachable":                    {from: "anthropic", fault: FaultServer, status: 503},
	"compaction_unavailable":                  {from: "anthropic", fault: FaultOverload, status: 529},
	"skill_read_blocked_undecryptable":        {from: "anthropic", fault: FaultRequest, status: 409},
	// A thread continues once. These answers often mean that an earlier attempt
	// worked and its reply was lost: sending again cannot bring it back.
	"thread_already_continued":    {from: "anthropic", fault: FaultRequest, status: 400},
	"thread_continue_in_flight":   {from: "anthropic", fault: FaultRequest, status: 400},
	"thread_fingerprint_mismatch": {from: "anthropic", fault: FaultRequest, status: 400},

	"rate_limit_exceeded":               {from: "openai", fault: FaultRateLimit, status: 429, weak: true},
	"slow_down":                         {from: "openai", fault: FaultRamp, status: 429},
	"insufficient_quota":                {from: "openai", fault: FaultSpend, status: 429},
	"credit_balance_exhausted":          {from: "openai", fault: FaultSpend, status: 429},
	"organization_spend_limit_exceeded": {from: "openai", fault: FaultSpend, status: 429},
	"project_spend_limit_exceeded":      {from: "openai", fault: FaultSpend, status: 429},
	"organization_usage_limit_exceeded": {from: "openai", fault: FaultSpend, status: 429},
	"billing_hard_limit_reached":        {from: "openai", fault: FaultSpend, status: 429},
	"billing_not_active":                {from: "openai", fault: FaultSpend, status: 429},
	"server_is_overloaded":              {from: "openai", fault: FaultOverload, status: 503},
	"server_error":                      {from: "openai", fault: FaultServer, status: 500, weak: true},
	"vector_store_timeout":              {from: "openai", fault: FaultTimeout, status: 504, weak: true},
	"context_length_exceeded":           {from: "openai", fault: FaultOverflow, status: 400},
	"invalid_api_key":                   {from: "openai", fault: FaultAuth, status: 401, weak: true},
	"model_not_found":                   {from: "openai", fault: FaultRequest, status: 404, weak: true},
	"invalid_prompt":                    {from: "openai", fault: FaultRequest, status: 400, weak: true},
	"bio_policy":                        {from: "openai", fault: FaultRequest, status: 400, weak: true},
	"misalignment_policy_violation":     {from: "openai", fault: FaultRequest, status: 400, weak: true},
	"data_residency_mismatch":           {from: "openai", fault: FaultRequest, status: 400, weak: true},
	"content_filter":                    {from: "openai", fault: FaultRequest, status: 400, weak: true},
	"content_policy_violation":          {from: "openai", fault: FaultRequest, status: 400, weak: true},
}

// imageCodes are the refusals of a picture in OpenAI's response.failed. All
// mean the same.
var imageCodes = map[string]bool{
	"invalid_image":                  true,
	"invalid_image_format":           true,
	"invalid_base64_image":           true,
	"invalid_image_url":              true,
	"invalid_image_mode":             true,
	"image_too_large":                true,
	"image_too_small":                true,
	"image_parse_error":              true,
	"image_content_policy_violation": true,
	"image_file_too_large":           true,
	"unsupported_image_media_type":   true,
	"empty_image_file":               true,
	"failed_to_download_image":       true,
	"image_file_not_found":           true,
}

// typeRules reads error.type and the exception and status names of AWS and
// Google, in lower case.
var typeRules = map[string]rule{
	"invalid_request_error":            {from: "anthropic", fault: FaultRequest, status: 400, weak: true},
	"authentication_error":             {from: "anthropic", fault: FaultAuth, status: 401, weak: true},
	"billing_error":                    {from: "anthropic", fault: FaultSpend, status: 402},
	"permission_error":                 {from: "anthropic", fault: FaultAuth, status: 403, weak: true},
	"not_found_error":                  {from: "anthropic", fault: FaultRequest, status: 404, weak: true},
	"conflict_error":                   {from: "anthropic", fault: FaultConflict, status: 409, weak: true},
	"memory_path_conflict_error":       {from: "anthropic", fault: FaultRequest, status: 409},
	"memory_precondition_failed_error": {from: "anthropic", fault: FaultRequest, status: 409},
	"request_too_large":                {from: "anthropic", fault: FaultRequest, status: 413, weak: true},
	"rate_limit_error":                 {from: "anthropic", fault: FaultRateLimit, status: 429, weak: true},
	"api_error":                        {from: "anthropic", fault: FaultServer, status: 500, weak: true},
	"timeout_error":                    {from: "anthropic", fault: FaultTimeout, status: 504},
	"overloaded_error":                 {from: "anthropic", fault: FaultOverload, status: 529},

	"exceeded_current_quota_error": {from: "moonshot", fault: FaultSpend, status: 429},
	"engine_overloaded_error":      {from: "moonshot", fault: FaultOverload, status: 503},
	"rate_limit_reached_error":     {from: "moonshot", fault: FaultRateLimit, status: 429, weak: true},
	"requests":                     {from: "openai", fault: FaultRateLimit, status: 429, weak: true},
	"tokens":                       {from: "openai", fault: FaultRateLimit, status: 429, weak: true},
	"service_unavailable_error":    {from: "openai", fault: FaultOverload, status: 503},
	"internal_error":               {from: "proxy", fault: FaultServer, status: 500, weak: true},
	"internal_server_error":        {from: "proxy", fault: FaultServer, status: 500, weak: true},
	"internalservererror":          {from: "proxy", fault: FaultServer, status: 500, weak: true},
	"exceed_context_size_error":    {from: "llamacpp", fault: FaultOverflow, status: 400},
	"badrequesterror":              {from: "vllm", fault: FaultRequest, status: 400, weak: true},
	"notfounderror":                {from: "vllm", fault: FaultRequest, status: 404, weak: true},

	"throttlingexception":           {from: "aws", fault: FaultRateLimit, status: 429},
	"toomanyrequestsexception":      {from: "aws", fault: FaultRateLimit, status: 429},
	"modelnotreadyexception":        {from: "aws", fault: FaultOverload, status: 429},
	"modeltimeoutexception":         {from: "aws", fault: FaultTimeout, status: 408},
	"modelerrorexception":           {from: "aws", fault: FaultRequest, status: 424},
	"modelstreamerrorexception":     {from: "aws", fault: FaultServer, status: 424},
	"serviceunavailableexception":   {from: "aws", fault: FaultOverload, status: 503},
	"internalserverexception":       {from: "aws", fault: FaultServer, status: 500},
	"internalfailure":               {from: "aws", fault: FaultServer, status: 500},
	"validationexception":           {from: "aws", fault: FaultRequest, status: 400, weak: true},
	"servicequotaexceededexception": {from: "aws", fault: FaultRequest, status: 400},
	"accessdeniedexception":         {from: "aws", fault: FaultAuth, status: 403, weak: true},
	"unrecognizedclientexception":   {from: "aws", fault: FaultAuth, status: 403},
	"expiredtokenexception":         {from: "aws", fault: FaultAuth, status: 403},
	"resourcenotfoundexception":     {from: "aws", fault: FaultRequest, status: 404, weak: true},

	"resource_exhausted":  {from: "google", fault: FaultRateLimit, status: 429},
	"unavailable":         {from: "google", fault: FaultOverload, status: 503},
	"deadline_exceeded":   {from: "google", fault: FaultTimeout, status: 504},
	"internal":            {from: "google", fault: FaultServer, status: 500, weak: true},
	"unknown":             {from: "google", fault: FaultServer, status: 500, weak: true},
	"cancelled":           {from: "google", fault: FaultCancelled, status: 499},
	"aborted":             {from: "google", fault: FaultConflict, status: 409, weak: true},
	"invalid_argument":    {from: "google", fault: FaultRequest, status: 400, weak: true},
	"failed_precondition": {from: "google", fault: FaultRequest, status: 400, weak: true},
	"not_found":           {from: "google", fault: FaultRequest, status: 404, weak: true},
	"permission_denied":   {from: "google", fault: FaultAuth, status: 403, weak: true},
	"unauthenticated":     {from: "google", fault: FaultAuth, status: 401, weak: true},
}

// word is a rule together with the stable name of its finding.
type word struct {
	rule
	name string
}

func codeWord(code string) word {
	code = strings.ToLower(code)
	if imageCodes[code] {
		return word{rule{from: "openai", fault: FaultRequest, status: 400, weak: true}, "openai-code-image"}
	}
	found, known := codeRules[code]
	return named(found, known, "-code-", code)
}

func typeWord(typ string) word {
	typ = strings.ToLower(typ)
	found, known := typeRules[typ]
	if !known {
		found, known = codeRules[typ]
	}
	return named(found, known, "-type-", typ)
}

func named(found rule, known bool, place, text string) word {
	if !known {
		return word{}
	}
	return word{found, found.from + place + text}
}

func (w word) known() bool { return w.name != "" }
