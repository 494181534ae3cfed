package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"aead.dev/minisign"
)

// sumsFile lists the SHA-256 sums of all other files, as `sha256sum --check` reads them.
const sumsFile = "SHA256SUMS"

func (r release) checksums() ([]byte, error) {
	files, err := os.ReadDir(r.out)
	if err != nil {
		return nil, err
	}
	var sums bytes.Buffer
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(r.out, file.Name()))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), file.Name())
	}
	return sums.Bytes(), r.write(sumsFile, sums.Bytes())
}

// signer signs a file's content as minisign does.
type signer func(content []byte, at time.Time, name string) ([]byte, error)

// loadSigner returns a signer with the key of a file; nil when there is none.
func loadSigner(file, password string) (signer, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the key that signs: %w", err)
	}
	var key minisign.PrivateKey
	if minisign.IsEncrypted(text) {
		key, err = minisign.DecryptKey(password, text)
	} else {
		err = key.UnmarshalText(text)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the key that signs, with the password in MINISIGN_PASSWORD: %w", err)
	}
	return func(content []byte, at time.Time, name string) ([]byte, error) {
		hashed := minisign.NewReader(bytes.NewReader(content))
		if _, err := io.Copy(io.Discard, hashed); err != nil {
			return nil, err
		}
		// The time is the commit's, so that the same key signs the same bytes the same way.
		trusted := fmt.Sprintf("timestamp:%d\tfile:%s\thashed", at.Unix(), name)
		return hashed.SignWithComments(key, trusted, "signature of a durward release"), nil
	}, nil
}
