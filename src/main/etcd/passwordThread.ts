/** Hashes and compares passwords by bcrypt in a thread of its own (L5), which takes about a tenth of a second each at the usual cost. */
import { JobThread, startWorker } from '#apiserver/yaml/jobThread'
import type { Passwords } from '#store/serve/auth/passwords'
import { refusal } from '#store/serve/refusals'
import type { PasswordJob } from './passwordWorker.ts'

/** Clients need no password to send one. */
const mostJobs = 50

/** @param cost the logarithm of the rounds of a new hash, 4 to 31 */
export function passwordThread(cost: number): Passwords {
  const thread = new JobThread<PasswordJob, string | boolean>(() =>
    startWorker(import.meta.url, { source: './passwordWorker.ts', bundle: './passwordWorker.mjs' }),
  )
  const run = async (password: string, hash?: string): Promise<string | boolean> => {
    if (thread.jobs >= mostJobs) throw refusal('tooManyRequests')
    return thread.run({ password, cost, hash })
  }
  return {
    hash: async (password) => String(await run(password)),
    matches: async (password, hash) => (await run(password, hash)) === true,
  }
}
