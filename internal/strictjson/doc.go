// Package strictjson reads JSON text (RFC 8259) in one strict way: every other reader understands an accepted text
// alike.
//
// Readers differ in their treatment of ambiguous text: which of two members of one name counts, whether "METHOD" is
// "method", how a lone surrogate is replaced, whether anything may follow the value. A gateway that decides on one
// reading while the server behind it acts on another has no policy at all (attacks M04, M05, B02, B10;
// CVE-2026-27896). So all of it is refused: duplicate members at every depth (names compared decoded), invalid UTF-8,
// escaped lone surrogates, a byte order mark, trailing data. Names are compared exactly, never folded. Depth, size,
// members per object and the length of a number are capped.
//
// [Check] answers yes or no without allocating. [Parse] returns a tree with decoded strings, number lexemes and
// offsets. [Scanner] is the pull reader below both, for packages that pick a few members out of a text in one pass.
package strictjson
