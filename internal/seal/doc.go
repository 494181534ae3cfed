// Package seal encrypts, signs and hides secrets. Secret is a string that no printer, logger or encoder shows. Keyring
// encrypts stored values, and derives keys from its own for everything else: TokenSealer encrypts short tokens that
// clients get (session ids, undo tokens), Signer signs, Digester makes digests for looking values up, MAC makes codes
// that show where a value comes from.
//
// The package keeps nothing but data keys, through storage.DataKeys. It opens no file and no connection, and writes no
// log. None of its errors holds a secret.
//
// All encryption is AES-256-GCM with random nonces. A data key encrypts records and is itself stored only wrapped by a
// master key, which the operator keeps outside the store: a copy of the database alone opens nothing.
//
// A sealed record is bound to its place (table, column, organization, user, record) and to the version of its key,
// all of which are authenticated with it: a ciphertext that was copied to another row, another column or another
// tenant does not open.
package seal
