// Package toolpin detects when a tool differs from the version that was first seen or accepted (attack M13, "rug
// pull"). It reads the parts of a tool's definition that a model sees, hashes them, and remembers the pinned and the
// last seen version. It shows both definitions and their difference to the administrator who decides, and makes hidden
// characters visible (attack M14). Its memory, writes and output are bounded, whatever an upstream lists.
package toolpin
