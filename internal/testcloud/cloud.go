package testcloud

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Token is the bearer token that Vertex takes, and Key the key of Foundry and the bearer key of Bedrock.
const (
	Token = "cloud-token-0123456789"
	Key   = "cloud-key-0123456789"
)

// AccessKey and SecretKey are the AWS credentials whose signature Bedrock takes. The secret itself must never arrive.
const (
	AccessKey = "AKIDCLOUD0123456789"
	SecretKey = "cloud-secret-0123456789"
)

// Request is what arrived at a cloud.
type Request struct {
	Method, Path string
	Header       http.Header
	Body         []byte
	// Model and Version are what path and body say.
	Model, Version string
	Stream         bool
}

// Cloud is an http.Handler. Make one with [Bedrock], [Vertex] or [Foundry].
type Cloud struct {
	model http.Handler
	// read takes the request apart, or says what it is refused for.
	read   func(*Request) (status int, text string)
	refuse func(w http.ResponseWriter, status int, text string)
	frames bool // event streams of AWS

	mu       sync.Mutex
	requests []Request
}

// Requests returns what has arrived, in order.
func (c *Cloud) Requests() []Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Request(nil), c.requests...)
}

// ServeHTTP checks a request as the cloud does, and passes it on as the Messages API has it.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	req := Request{Method: r.Method, Path: r.URL.EscapedPath(), Header: r.Header.Clone(), Body: body}
	status, text := c.read(&req)
	c.mu.Lock()
	c.requests = append(c.requests, req)
	c.mu.Unlock()
	if status != 0 {
		c.refuse(w, status, text)
		return
	}
	in := r.Clone(r.Context())
	in.URL = &url.URL{Path: "/v1/messages"}
	if strings.HasSuffix(req.Path, "count-tokens:rawPredict") {
		in.URL.Path = "/v1/messages/count_tokens"
	}
	in.Header = http.Header{"Content-Type": {"application/json"}, "Anthropic-Version": {"2023-06-01"}, "X-Api-Key": {"any"}}
	plain := inner(&req)
	in.Body, in.ContentLength = io.NopCloser(bytes.NewReader(plain)), int64(len(plain))
	if c.frames && req.Stream {
		w = &framer{ResponseWriter: w}
	}
	c.model.ServeHTTP(w, in)
}

// inner is the body as the Messages API has it.
func inner(r *Request) []byte {
	var fields map[string]json.RawMessage
	if json.Unmarshal(r.Body, &fields) != nil {
		return r.Body
	}
	delete(fields, "anthropic_version")
	delete(fields, "anthropic_beta")
	fields["model"], _ = json.Marshal(r.Model)
	if r.Stream {
		fields["stream"] = json.RawMessage("true")
	}
	plain, _ := json.Marshal(fields)
	return plain
}

// field is a text of the body.
func (r *Request) field(name string) string {
	var fields map[string]json.RawMessage
	var text string
	if json.Unmarshal(r.Body, &fields) != nil || json.Unmarshal(fields[name], &text) != nil {
		return ""
	}
	return text
}

func (r *Request) has(name string) bool {
	var fields map[string]json.RawMessage
	return json.Unmarshal(r.Body, &fields) == nil && fields[name] != nil
}

var (
	bedrockPath = regexp.MustCompile(`^/model/([^/]+)/(invoke|invoke-with-response-stream)$`)
	signature   = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=` + AccessKey + `/\d{8}/([a-z0-9-]+)/bedrock/aws4_request, SignedHeaders=[a-z0-9;-]*host[a-z0-9;-]*x-amz-date[a-z0-9;-]*, Signature=[0-9a-f]{64}$`)
	vertexPath  = regexp.MustCompile(`^/v1/projects/([^/]+)/locations/([^/]+)/publishers/anthropic/models/([^/:]+):(rawPredict|streamRawPredict)$`)
)

// Bedrock is bedrock-runtime in a region. It takes a signature of AccessKey, or Key as a bearer.
func Bedrock(region string, model http.Handler) *Cloud {
	c := &Cloud{model: model, frames: true}
	c.refuse = func(w http.ResponseWriter, status int, text string) {
		name, _, _ := strings.Cut(text, ":")
		w.Header().Set("X-Amzn-Errortype", name)
		reply(w, status, `{"__type":"`+name+`","message":"`+text+`"}`)
	}
	c.read = func(r *Request) (int, string) {
		parts := bedrockPath.FindStringSubmatch(r.Path)
		if r.Method != http.MethodPost || parts == nil {
			return http.StatusNotFound, "ResourceNotFoundException: " + r.Method + " " + r.Path
		}
		r.Model, _ = url.PathUnescape(parts[1])
		r.Stream, r.Version = parts[2] != "invoke", r.field("anthropic_version")
		auth := r.Header.Get("Authorization")
		signed := signature.FindStringSubmatch(auth)
		switch {
		case auth != "Bearer "+Key && signed == nil:
			return http.StatusForbidden, "UnrecognizedClientException: the credential is not known"
		case len(signed) > 1 && signed[1] != region:
			return http.StatusForbidden, "InvalidSignatureException: another region"
		case r.Version == "":
			return http.StatusBadRequest, "ValidationException: anthropic_version is missing"
		case r.has("model"), r.has("stream"), r.Header.Get("Anthropic-Version") != "", r.Header.Get("Anthropic-Beta") != "":
			return http.StatusBadRequest, "ValidationException: model, stream, version or betas stand in the wrong place"
		}
		return 0, ""
	}
	return c
}

// Vertex is Vertex AI in a region and for a project. It takes Token.
func Vertex(region, project string, model http.Handler) *Cloud {
	c := &Cloud{model: model}
	c.refuse = func(w http.ResponseWriter, status int, text string) {
		name, _, _ := strings.Cut(text, ":")
		reply(w, status, `{"error":{"code":`+strconv.Itoa(status)+`,"message":"`+text+`","status":"`+name+`"}}`)
	}
	c.read = func(r *Request) (int, string) {
		parts := vertexPath.FindStringSubmatch(r.Path)
		if r.Method != http.MethodPost || parts == nil || parts[1] != project || parts[2] != region {
			return http.StatusNotFound, "NOT_FOUND: " + r.Method + " " + r.Path
		}
		r.Model, _ = url.PathUnescape(parts[3])
		r.Stream, r.Version = parts[4] != "rawPredict", r.field("anthropic_version")
		if r.Model == "count-tokens" {
			r.Model = r.field("model")
		}
		switch {
		case r.Header.Get("Authorization") != "Bearer "+Token:
			return http.StatusUnauthorized, "UNAUTHENTICATED: the token is not known"
		case r.Version == "":
			return http.StatusBadRequest, "INVALID_ARGUMENT: anthropic_version is missing"
		}
		return 0, ""
	}
	return c
}

// Foundry is Microsoft Foundry. It takes Key as x-api-key, or Token as a bearer.
func Foundry(model http.Handler) *Cloud {
	c := &Cloud{model: model}
	c.refuse = func(w http.ResponseWriter, status int, text string) {
		reply(w, status, `{"error":{"code":"`+strconv.Itoa(status)+`","message":"`+text+`"}}`)
	}
	c.read = func(r *Request) (int, string) {
		r.Model, r.Version = r.field("model"), r.Header.Get("Anthropic-Version")
		r.Stream = bytes.Contains(r.Body, []byte(`"stream":true`))
		switch {
		case r.Path != "/anthropic/v1/messages":
			return http.StatusNotFound, "no such path"
		case r.Header.Get("X-Api-Key") != Key && r.Header.Get("Authorization") != "Bearer "+Token:
			return http.StatusUnauthorized, "the key is not known"
		}
		return 0, ""
	}
	return c
}

func reply(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}
