package metering

import "math/bits"

// Tokens holds the numbers of tokens that a call used or is expected to use.
type Tokens struct {
	Input  int64
	Output int64
	Cached int64 // part of Input that came from the provider's cache
	// Written is the part of Input that the provider was asked to cache. Written1h is the part of Written that it keeps
	// for an hour.
	Written, Written1h int64
}

const (
	// maxTokens bounds one number of tokens, so that sums of calls cannot overflow, whatever a provider says.
	maxTokens = 1 << 40
	// maxCost bounds the cost of one call, a million units in billionths, for the same reason.
	maxCost = 1_000_000 * unit
	// unit is one unit of the currency in billionths.
	unit = 1_000_000_000
	// perTokens is the number of tokens that a price is for.
	perTokens = 1_000_000
)

// sane limits token numbers to valid ranges: none negative, and no more cached ones than there are.
func (t Tokens) sane() Tokens {
	t.Input, t.Output = clamp(t.Input), clamp(t.Output)
	t.Cached = min(clamp(t.Cached), t.Input)
	t.Written = min(clamp(t.Written), t.Input-t.Cached)
	t.Written1h = min(clamp(t.Written1h), t.Written)
	return t
}

func clamp(tokens int64) int64 { return min(max(tokens, 0), maxTokens) }

// Price holds the prices of a model's tokens, in billionths of the currency's unit for a million tokens. None is
// negative.
type Price struct {
	Input  int64
	Cached int64 // input from the provider's cache
	Output int64
	// Write is for input that the provider caches. Write1h is for input that it keeps for an hour.
	Write, Write1h int64
}

// Cost returns the cost of the tokens in billionths, rounded up once for the call.
func (p Price) Cost(t Tokens) int64 {
	t = t.sane()
	var high, low uint64
	for _, part := range [...][2]int64{
		{t.Input - t.Cached - t.Written, p.Input}, {t.Cached, p.Cached}, {t.Written - t.Written1h, p.Write}, {t.Written1h, p.Write1h}, {t.Output, p.Output},
	} {
		h, l := bits.Mul64(uint64(part[0]), uint64(part[1])) // neither is negative
		var carry uint64
		low, carry = bits.Add64(low, l, 0)
		high += h + carry // below 5 * 2^40 * 2^50, which is far from 2^128
	}
	low, carry := bits.Add64(low, perTokens-1, 0)
	if high += carry; high >= perTokens {
		return maxCost
	}
	cost, _ := bits.Div64(high, low, perTokens)
	return int64(min(cost, maxCost))
}

// add returns a sum that stops at the largest number.
func add(a, b int64) int64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return 1<<63 - 1
}
