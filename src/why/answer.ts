/** The answer to "why does it wait?" (L2, pure), and its text: at most three lines for each cause. */
import type { Frozen, KubeObject } from '#api/machinery/meta'

export interface Cause {
  readonly text: string
  /** The condition, event or field that shows it. */
  readonly evidence: string
  /** The command to run next. */
  readonly next?: string | undefined
}

export interface Explanation {
  /** How the object is: `1 of 3 replicas are ready`. */
  readonly state: string
  /** The most important first. */
  readonly causes: readonly Cause[]
  /** False: it has not reached its desired state, even if no cause is found. Absent: it has if there is no cause. */
  readonly isSettled?: boolean | undefined
}

export interface Answer extends Explanation {
  /** `Deployment default/web`. */
  readonly object: string
  readonly isSettled: boolean
  /** What the reader has no right to see, and what was too much to look at. */
  readonly notRead: readonly string[]
}

const shownCauses = 3
const longestLine = 300

export function describeAnswer({ object, state, causes, isSettled, notRead }: Answer): string {
  const [first, ...others] = causes.slice(0, shownCauses)
  const hidden = notRead.map((what) => `not read: ${what}`)
  if (!first) {
    const verdict = isSettled ? `${object} does not wait: ${state}` : `${object}: ${state}; nothing that was read shows why`
    return textOf([verdict, ...hidden])
  }
  const rest = causes.length > shownCauses ? [`and ${causes.length - shownCauses} more causes, which -o json lists`] : []
  return textOf([`${object}: ${first.text}`, ...proofOf(first), ...others.flatMap((cause) => [`also: ${cause.text}`, ...proofOf(cause)]), ...rest, ...hidden])
}

function proofOf({ evidence, next }: Cause): string[] {
  return [`  shown by: ${evidence}`, ...(next === undefined ? [] : [`  next:     ${next}`])]
}

const textOf = (lines: readonly string[]) => lines.map((line) => `${shortened(line)}\n`).join('')

/** Errors within errors name the cause at their end. */
function shortened(line: string): string {
  if (line.length <= longestLine) return line
  const half = longestLine / 2
  return `${line.slice(0, half)}…${line.slice(-half)}`
}

export function objectName({ kind, metadata: { namespace, name = '' } }: Frozen<KubeObject>): string {
  return namespace === undefined ? `${kind} ${name}` : `${kind} ${namespace}/${name}`
}

/** A command of these words. Names that tenants choose cannot end a word. */
export function command(...words: readonly (string | undefined)[]): string {
  return words
    .filter((word) => word !== undefined)
    .map(shellWord)
    .join(' ')
}

function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}

/** `kubectl WORDS -n NAMESPACE`. */
export function kubectl(namespace: string | undefined, ...words: readonly string[]): string {
  return command('kubectl', ...words, ...(namespace === undefined ? [] : ['-n', namespace]))
}

/** `skiff why KIND/NAME -n NAMESPACE`. */
export function skiffWhy(kind: string, name: string, namespace?: string): string {
  return command('skiff', 'why', `${kind}/${name}`, ...(namespace === undefined ? [] : ['-n', namespace]))
}

interface AnyCondition {
  readonly type: string
  readonly status: string
  readonly reason?: string | undefined
  readonly message?: string | null | undefined
}

/** `condition Ready False (Reason): message`. */
export function conditionText({ type, status, reason, message }: AnyCondition): string {
  return `condition ${type} ${status}${reason ? ` (${reason})` : ''}${message ? `: ${message}` : ''}`
}

/** `1 pod`, `2 pods`. */
export function counted(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? '' : 's'}`
}
