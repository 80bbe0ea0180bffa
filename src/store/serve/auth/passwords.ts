/** What the Auth service needs of password hashes (L2). Hashing takes a tenth of a second of CPU, so it belongs on a thread of its own. */
export interface Passwords {
  /** A hash of bcrypt. @throws GrpcRefusal when too many hashes are waiting */
  hash(password: string): Promise<string>
  /** @throws GrpcRefusal when too many hashes are waiting */
  matches(password: string, hash: string): Promise<boolean>
}

/** Longer ones are refused: bcrypt would ignore the rest. Upstream: golang.org/x/crypto/bcrypt ErrPasswordTooLong. */
export const mostPasswordBytes = 72
