package http1

// Bounds of the framing of a chunked body.
const (
	maxChunkDigits = 15
	maxChunkLine   = 256      // bytes of one chunk's size and extensions
	maxExcess      = 16 << 10 // bytes of framing beyond 16 for each chunk and two for each byte of data
	maxTrailers    = 4 << 10  // bytes of all trailers
)

type chunkState uint8

const (
	inSize chunkState = iota
	afterSize
	inExtension
	sizeLF
	inData
	dataCR
	dataLF
	trailerStart
	trailerName
	trailerValue
	trailerLF
	lastLF
	ended
)

// chunks removes the framing of a chunked body (RFC 9112, 7.1), however the bytes are split. It holds no bytes: a
// stream that waits needs no buffer. The zero value is the start of a body.
type chunks struct {
	state   chunkState
	digits  uint8
	line    uint16 // bytes of the current chunk line
	trailer uint16 // bytes of trailers
	left    int64  // of the chunk's data; in the chunk line, its size so far
	excess  int64
}

// decode reads from src and writes the data to dst, which may be src itself. It stops at the body's end, or when src
// is used up, or when dst is full and more data follows; written and read say how far it came.
func (c *chunks) decode(dst, src []byte) (written, read int, err error) {
	for read < len(src) && c.state != ended {
		if c.state == inData {
			n := min(int64(len(src)-read), c.left)
			copied := copy(dst[written:], src[read:read+int(n)])
			if copied == 0 {
				return written, read, nil
			}
			written += copied
			read += copied
			if c.left -= int64(copied); c.left == 0 {
				c.state = dataCR
			}
			continue
		}
		if err := c.frame(src[read]); err != nil {
			return written, read, err
		}
		read++
	}
	return written, read, nil
}

// frame processes one byte that is not data.
func (c *chunks) frame(b byte) error {
	switch c.state {
	case inSize, afterSize, inExtension:
		return c.sizeLine(b)
	case sizeLF:
		if b != '\n' {
			return errChunkLine
		}
		// Chunks of one byte are a legitimate way to stream, and have five bytes of framing each. Endless extensions
		// are not legitimate (CVE-2023-39326).
		c.excess += int64(c.line) + 2
		c.excess = max(c.excess-16-2*c.left, 0)
		if c.excess > maxExcess {
			return errChunkOverhead
		}
		c.line, c.digits = 0, 0
		c.state = inData
		if c.left == 0 {
			c.state = trailerStart
		}
	case dataCR:
		if b != '\r' {
			return errChunkEnd
		}
		c.state = dataLF
	case dataLF:
		if b != '\n' {
			return errChunkEnd
		}
		c.state = inSize
	default:
		return c.trailerByte(b)
	}
	return nil
}

func (c *chunks) sizeLine(b byte) error {
	if b == '\r' {
		if c.digits == 0 {
			return errChunkSize
		}
		c.state = sizeLF
		return nil
	}
	if c.line++; c.line > maxChunkLine {
		return errChunkLine
	}
	switch c.state {
	case inSize:
		d, ok := hexDigit(b)
		switch {
		case ok:
			if c.digits++; c.digits > maxChunkDigits {
				return errChunkSize
			}
			c.left = c.left<<4 | int64(d)
		case c.digits == 0:
			return errChunkSize
		case b == ';':
			c.state = inExtension
		case b == ' ' || b == '\t':
			c.state = afterSize // some servers pad with spaces
		default:
			return errChunkSize
		}
	case afterSize:
		if b != ' ' && b != '\t' {
			return errChunkSize
		}
	case inExtension:
		if !valueByte(b) {
			return errChunkLine
		}
	}
	return nil
}

// trailerByte checks trailers like headers, and drops them (H13).
func (c *chunks) trailerByte(b byte) error {
	if c.trailer++; c.trailer > maxTrailers {
		return errTrailerTooLong
	}
	switch c.state {
	case trailerStart:
		if b == '\r' {
			c.state = lastLF
			return nil
		}
		if !tokenByte(b) {
			return errTrailer
		}
		c.state = trailerName
	case trailerName:
		if b == ':' {
			c.state = trailerValue
		} else if !tokenByte(b) {
			return errTrailer
		}
	case trailerValue:
		if b == '\r' {
			c.state = trailerLF
		} else if !valueByte(b) {
			return errTrailer
		}
	case trailerLF, lastLF:
		if b != '\n' {
			return errTrailer
		}
		if c.state == lastLF {
			c.state = ended
		} else {
			c.state = trailerStart
		}
	}
	return nil
}

func hexDigit(b byte) (byte, bool) {
	switch {
	case '0' <= b && b <= '9':
		return b - '0', true
	case 'a' <= b && b <= 'f':
		return b - 'a' + 10, true
	case 'A' <= b && b <= 'F':
		return b - 'A' + 10, true
	}
	return 0, false
}
