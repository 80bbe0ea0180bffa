/** The thread that hashes passwords (L5): ./passwordThread.ts starts and ends it. */
import { compareSync, hashSync } from 'bcryptjs'
import { serveJobs } from '#apiserver/yaml/jobThread'

/** With a hash: whether it is one of the password. */
export interface PasswordJob {
  readonly password: string
  readonly cost: number
  readonly hash?: string | undefined
}

serveJobs(({ password, cost, hash }: PasswordJob): string | boolean => (hash === undefined ? hashSync(password, cost) : compareSync(password, hash)))
