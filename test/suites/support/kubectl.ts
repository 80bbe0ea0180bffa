/** kubectl against the suite's cluster, which KUBECONFIG names. */
import { execFile } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

const execute = promisify(execFile)
const withinMs = 120_000
const maxBuffer = 64 * 1024 * 1024

export interface Condition {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
}

/** As much of an object as suites read; each suite says what its own kinds have besides. */
export interface ApiObject {
  readonly metadata: {
    readonly name: string
    readonly uid: string
    readonly namespace?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly ownerReferences?: readonly { readonly kind: string; readonly name: string }[]
  }
  readonly status?: { readonly conditions?: readonly Condition[] }
}

/** kubectl's output. @throws Error with what it wrote to its standard error */
export async function kubectl(args: readonly string[], input?: string): Promise<string> {
  const running = execute('kubectl', args, { maxBuffer })
  if (input !== undefined) running.child.stdin?.end(input)
  return (await running).stdout
}

/** The parts of the resource's name follow each other: `read('secret', 'ca', '-n', 'default')`. */
export async function read<T = ApiObject>(...args: readonly string[]): Promise<T> {
  return JSON.parse(await kubectl(['get', ...args, '-o', 'json'])) as T
}

export async function list<T = ApiObject>(...args: readonly string[]): Promise<readonly T[]> {
  return (await read<{ items: readonly T[] }>(...args)).items
}

export async function apply(...objects: readonly object[]): Promise<void> {
  await kubectl(['apply', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }))
}

/** What kubectl prints when the server refuses the object, which is not stored otherwise. @throws Error when the server accepts it */
export async function refusal(object: object): Promise<string> {
  const error = await kubectl(['create', '--dry-run=server', '-f', '-'], JSON.stringify(object)).then(
    (output) => new Error(`accepted: ${output}`),
    (reason: Error & { stderr?: string }) => reason,
  )
  if (!('stderr' in error) || error.stderr === undefined) throw error
  return error.stderr
}

export function hasCondition({ status }: ApiObject, type: string, value = 'True'): boolean {
  return status?.conditions?.some((one) => one.type === type && one.status === value) ?? false
}

/** Asks until the answer is right; an error counts as an answer that is not. @throws Error with the last answer */
export async function until<T>(what: string, ask: () => Promise<T>, isRight: (answer: T) => boolean, timeoutMs = withinMs): Promise<T> {
  const deadlineMs = performance.now() + timeoutMs
  for (;;) {
    const answer = await ask().catch((error: Error) => error)
    if (!(answer instanceof Error) && isRight(answer)) return answer
    if (performance.now() > deadlineMs)
      throw new Error(`${what}: not within ${timeoutMs} ms; last: ${answer instanceof Error ? answer : JSON.stringify(answer)}`)
    await sleep(200)
  }
}

/** One behaviour of the suite, named after its row of the feature map. */
export async function step(name: string, run: () => Promise<void>): Promise<void> {
  const startedMs = performance.now()
  await run()
  console.log(`ok ${name} (${((performance.now() - startedMs) / 1000).toFixed(1)} s)`)
}
