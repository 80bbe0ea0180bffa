/** Which objects `why` explains, and which object an answer's next command asks about (L4, pure). */
import { explainedKinds } from '#why/explainedKinds'
import { type Kind, nameOfKind, type ObjectName } from './places.ts'

/** Their explanations have facts of their own instead of causes. */
const withFacts = ['namespaces', 'horizontalpodautoscalers.autoscaling']

const explained: ReadonlySet<string> = new Set([...explainedKinds, ...withFacts])

interface Explainable {
  readonly metadata: { readonly deletionTimestamp?: string }
  readonly status?: { readonly conditions?: unknown }
}

export const hasFacts = (kind: Pick<Kind, 'group' | 'resource'>): boolean => withFacts.includes(nameOfKind(kind))

/** Objects of other kinds are explained by their conditions, and those that are being deleted by what keeps them. */
export function isExplained(kind: Pick<Kind, 'group' | 'resource'>, object: Explainable | undefined): boolean {
  if (explained.has(nameOfKind(kind)) || object?.metadata.deletionTimestamp !== undefined) return true
  const conditions = object?.status?.conditions
  return Array.isArray(conditions) && conditions.length > 0
}

/** The object of `skiff why KIND/NAME -n NAMESPACE`; undefined for any other command. */
export function targetOf(command: string, kinds: readonly Kind[]): { readonly kind: Kind; readonly object: ObjectName } | undefined {
  const [, word = '', name = '', namespace = ''] = /^skiff why ([\w.-]+)\/([^\s'/]+)(?: -n ([^\s']+))?$/.exec(command) ?? []
  if (name === '') return undefined
  const kind = kinds.find((one) => isNamed(one, word))
  return kind && { kind, object: { namespace: kind.namespaced ? namespace || 'default' : '', name } }
}

function isNamed({ group, resource, kind, shortNames }: Kind, word: string): boolean {
  return [resource, kind.toLowerCase(), ...shortNames].some((name) => name === word || `${name}.${group}` === word)
}
