package http1

// RequestError describes a request that this client refuses to send. Nothing was written and no connection was used.
type RequestError struct{ Reason string }

func (e *RequestError) Error() string { return "checking the request: " + e.Reason }

// ProtocolError describes an answer that is not HTTP/1.1, or that two readers could understand differently. Its text
// holds no part of the answer. The request may have been executed.
type ProtocolError struct{ Reason string }

func (e *ProtocolError) Error() string { return "reading the answer: " + e.Reason }

// HandshakeError describes a TLS handshake that failed. Nothing of the request was sent.
type HandshakeError struct{ Err error }

func (e *HandshakeError) Error() string { return "shaking hands: " + e.Err.Error() }

// Unwrap returns the cause, for errors.Is and errors.As.
func (e *HandshakeError) Unwrap() error { return e.Err }

// The reasons of a ProtocolError.
var (
	errStatusLine     = &ProtocolError{"malformed status line"}
	errField          = &ProtocolError{"malformed header field"}
	errFolded         = &ProtocolError{"folded header field"}
	errBareLF         = &ProtocolError{"line without CR before LF"}
	errTooLarge       = &ProtocolError{"headers are too large"}
	errTooMany        = &ProtocolError{"too many header fields"}
	errInterim        = &ProtocolError{"too many interim answers"}
	errSwitch         = &ProtocolError{"switch of protocols that was not asked for"}
	errEncoding       = &ProtocolError{"transfer encoding other than chunked"}
	errEncodingOld    = &ProtocolError{"transfer encoding in an HTTP/1.0 answer"}
	errBothLengths    = &ProtocolError{"transfer encoding and content length"}
	errLength         = &ProtocolError{"malformed or contradicting content length"}
	errTrailerField   = &ProtocolError{"trailer that frames the message"}
	errChunkSize      = &ProtocolError{"malformed chunk size"}
	errChunkLine      = &ProtocolError{"malformed or long chunk line"}
	errChunkEnd       = &ProtocolError{"chunk without end"}
	errChunkOverhead  = &ProtocolError{"chunks with too little in them"}
	errTrailer        = &ProtocolError{"malformed trailer"}
	errTrailerTooLong = &ProtocolError{"trailers are too long"}
)
