package format

import "bytes"

// Most fields of an intent are the same in each call of one caller to one server: the user, the agent, the rule. These
// fields are the shared part of its text, the last member. The own part is the text before it:
//
//	{"I":"<brief id>","t":<time>,"o":"<tool>","g":"<brief digest>","0":{"u":"<user>","m":"<server>","d":"allow"}}
//
// The hash of a record is computed over the hash of its shared part.
const (
	// SharingStart begins a text that has a shared part.
	SharingStart = `{"I":"`
	// SharedStart begins the shared part.
	SharedStart = `,"0":`
)

// SplitShared splits a text into its own and its shared part. part is nil when there is no shared part.
func SplitShared(text []byte) (own, part []byte) {
	if !bytes.HasPrefix(text, []byte(SharingStart)) || !bytes.HasSuffix(text, []byte("}}")) {
		return text, nil
	}
	// Quotes in texts are escaped, and no value in a shared part is an object.
	at := bytes.LastIndex(text, []byte(SharedStart+"{"))
	if at < 0 {
		return text, nil
	}
	return text[:at], text[at+len(SharedStart) : len(text)-1]
}

// AppendShared completes an own part with the shared part.
func AppendShared[T string | []byte](b []byte, part T) []byte {
	return append(append(append(b, SharedStart...), part...), '}')
}
