/** Hashes and compares passwords by bcrypt in a thread of its own (L5), which takes about a tenth of a second each at the usual cost. */
import { JobThread, startWorker } from '#apiserver/yaml/jobThread'
import { mostPasswordBytes, type Passwords } from '#store/serve/auth/passwords'
import { refusal } from '#store/serve/refusals'
import { atMost } from '#store/serve/turns'
import type { PasswordJob } from './passwordWorker.ts'

/** Logins that wait, and as many new passwords. Any client can try to log in, and must not keep an administrator from adding users. */
const mostJobs = 50

const limit = () => atMost(mostJobs, () => refusal('tooManyRequests'))

/** @param cost the logarithm of the rounds of a new hash, 4 to 31 */
export function passwordThread(cost: number): Passwords {
  const thread = new JobThread<PasswordJob, string | boolean>(() =>
    startWorker(import.meta.url, { source: './passwordWorker.ts', bundle: './passwordWorker.mjs' }),
  )
  const [hashes, matches] = [limit(), limit()]
  return {
    hash: async (password) => String(await hashes(() => thread.run({ password, cost }))),
    // bcrypt ignores the rest, which may be long.
    matches: async (password, hash) => (await matches(() => thread.run({ password: password.slice(0, mostPasswordBytes), cost, hash }))) === true,
  }
}
