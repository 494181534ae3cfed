package metering

import "math/bits"

// Tokens are what a call used, or is expected to.
type Tokens struct {
	Input  int64
	Output int64
	Cached int64 // of Input, those that the provider had cached
	// Written are those of Input that the provider was asked to cache, and Written1h those of Written that it keeps for an hour.
	Written, Written1h int64
}

const (
	// maxTokens bounds one number of tokens: whatever a provider says, sums of calls do not overflow.
	maxTokens = 1 << 40
	// maxCost bounds what one call can cost, a million units in billionths, for the same reason.
	maxCost = 1_000_000 * unit
	// unit is one unit of the currency in billionths.
	unit = 1_000_000_000
	// perTokens is the number of tokens that prices are for.
	perTokens = 1_000_000
)

// sane brings tokens into bounds: none negative, no more cached ones than there are.
func (t Tokens) sane() Tokens {
	t.Input, t.Output = clamp(t.Input), clamp(t.Output)
	t.Cached = min(clamp(t.Cached), t.Input)
	t.Written = min(clamp(t.Written), t.Input-t.Cached)
	t.Written1h = min(clamp(t.Written1h), t.Written)
	return t
}

func clamp(tokens int64) int64 { return min(max(tokens, 0), maxTokens) }

// Price is what a model's tokens cost, in billionths of the currency's unit for a million tokens. None is negative.
type Price struct {
	Input  int64
	Cached int64 // input that the provider had cached
	Output int64
	// Write is for input that the provider caches, and Write1h for what it keeps for an hour.
	Write, Write1h int64
}

// Cost is what the tokens cost in billionths, rounded up once for the call.
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

// add is a sum that stays at the largest number.
func add(a, b int64) int64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return 1<<63 - 1
}
