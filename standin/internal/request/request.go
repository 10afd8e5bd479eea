// Package request reads what a client asks of the stand-in, and refuses what the real APIs refuse, in their shapes. It
// keeps no state and knows of no fault.
package request

import (
	"holdfast/internal/wire"
)

// Endpoint is an operation of the API.
type Endpoint string

// The operations that the stand-in answers.
const (
	Messages        Endpoint = "messages"
	CountTokens     Endpoint = "count_tokens"
	BatchCreate     Endpoint = "batch_create"
	BatchList       Endpoint = "batch_list"
	BatchGet        Endpoint = "batch_get"
	BatchResults    Endpoint = "batch_results"
	BatchCancel     Endpoint = "batch_cancel"
	BatchDelete     Endpoint = "batch_delete"
	ModelList       Endpoint = "model_list"
	ModelGet        Endpoint = "model_get"
	FileUpload      Endpoint = "file_upload"
	FileList        Endpoint = "file_list"
	FileGet         Endpoint = "file_get"
	FileContent     Endpoint = "file_content"
	FileDelete      Endpoint = "file_delete"
	ChatCompletions Endpoint = "chat_completions"
	Responses       Endpoint = "responses"
)

// Request is what the stand-in needs to know of a request.
type Request struct {
	Endpoint Endpoint
	Dialect  wire.Dialect
	Path     string // without a base path in front of /v1
	ID       string // of the resource that the path names
	Key      string // API key
	CustomID string // of an item of a batch, or the header x-custom-id

	Model        string
	MaxTokens    int // 0: no limit given
	Stream       bool
	IncludeUsage bool   // chat completions: a chunk with usage ends the stream
	Prompt       string // all text of the request, each piece ended by LF, so that no search matches across two
	Input        int    // tokens, estimated
	Cacheable    int    // tokens of Input up to the last cache_control; 0: nothing may be cached

	Tools         []Tool
	ToolChoice    ToolChoice
	ToolAnswered  bool // the last message brings the result of a tool
	Thinking      bool // a thinking block is wanted in front of the text
	Omitted       bool // thinking.display is "omitted": the block has a signature alone
	StopSequences []string
	Fallbacks     []string // models that the API itself is to ask when one refuses
	Schema        any      // of the JSON text that is asked for; nil: free text

	Items []Item // of a batch
	File  *File  // of an upload
	Page  Page   // of a list
}

// Tool is a function that the answer may call.
type Tool struct {
	Name   string
	Schema any // JSON Schema of its input, decoded
}

// ToolChoice is whether the answer must call a tool.
type ToolChoice struct {
	Mode string // auto, any, tool, none
	Name string // with tool
}

// Item is one request of a batch. Params is what it would be by itself; Refusal what the API would refuse it for.
type Item struct {
	CustomID string
	Params   Request
	Refusal  *Refusal
}

// File is an uploaded file. Its content is kept, for it can be fetched again.
type File struct {
	Name    string
	Type    string // media type
	Content []byte
}

// Page is a part of a list.
type Page struct {
	Limit             int // 0: the default of the API
	AfterID, BeforeID string
}

// Refusal is the answer to a request that the real API refuses.
type Refusal struct {
	Status  int
	Type    string // error.type; "" for the one of the status
	Code    string // error.details.error_code, in the OpenAI dialect error.code
	Param   string // OpenAI dialect: error.param
	Message string
	HTML    bool // the answer comes from the edge of the network, as a page
}
