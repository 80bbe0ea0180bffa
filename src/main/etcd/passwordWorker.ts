/** The thread that hashes passwords (L5): ./passwordThread.ts starts and ends it. */
import { compareSync, hashSync } from 'bcryptjs'
import { serveJobs } from '#apiserver/yaml/jobThread'

/** With a hash: whether it is one of the password. */
export interface PasswordJob {
  readonly password: string
  readonly cost: number
  readonly hash?: string | undefined
}

serveJobs(({ password, cost, hash }: PasswordJob): string | boolean => (hash === undefined ? hashSync(password, cost) : matches(password, hash)))

/** A hash that is none of bcrypt, as a restored snapshot may have one, matches no password. */
function matches(password: string, hash: string): boolean {
  try {
    return compareSync(password, hash)
  } catch {
    return false
  }
}
