/**
 * Keeps the supervisor's thread pool small (L5): libuv reads its size from the environment, which the processes that the supervisor starts inherit. They get
 * the size that the user chose, if any.
 */
const sizeVariable = 'UV_THREADPOOL_SIZE'
/** Carries the user's own size past the supervisor; empty: none. */
const usersVariable = 'SKIFF_USERS_UV_THREADPOOL_SIZE'

type Environment = Readonly<Record<string, string | undefined>>

/** Variables to add to `environment` for a process with one thread. */
export function withOneThread(environment: Environment): Record<string, string> {
  return { [sizeVariable]: '1', [usersVariable]: environment[sizeVariable] ?? '' }
}

/** Restores the user's size in an environment. Call it after the first use of the pool, which fixes the pool's size. */
export function restoreThreadPoolSize(environment: Record<string, string | undefined>): void {
  const users = environment[usersVariable]
  if (users === undefined) return
  delete environment[usersVariable]
  if (users === '') delete environment[sizeVariable]
  else environment[sizeVariable] = users
}
