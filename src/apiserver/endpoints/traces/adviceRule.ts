/** A rule of advice (L3): which refusals it knows, and what it says about them. */
import type { TracedRequest } from '#api/debug/traces'
import { shellWord } from '#base/shellWord'
import type { Authorizer } from '../../authz/authorizer.ts'
import type { AdviceReader } from './adviceReader.ts'

export interface AdviceDeps {
  readonly reader: AdviceReader
  readonly authorizers: readonly Authorizer[]
}

export interface AdviceRule {
  /** Absent: any. */
  readonly code?: number
  readonly message: RegExp
  lines(match: RegExpExecArray, request: TracedRequest, deps: AdviceDeps): readonly string[] | Promise<readonly string[]>
}

/** `-n a`, for commands. */
export function inNamespace({ object }: TracedRequest): string {
  return object?.namespace ? ` -n ${shellWord(object.namespace)}` : ''
}

/** `pods "web"` with its namespace, as `pods/a/web`. */
export function objectText({ object, uri }: TracedRequest): string {
  if (!object) return uri
  return [object.resource, object.namespace, object.name].filter((part) => part !== '').join('/')
}
