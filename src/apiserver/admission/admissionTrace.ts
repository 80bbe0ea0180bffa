/** Records for a reader which admission plugins handled a request and what each changed (L3). A request without a reader makes none. */
import { describeChanges, fieldChanges } from '#api/debug/fieldChanges'
import type { TracedPlugin } from '#api/debug/traces'
import { stringifyExactly } from '#api/machinery/exactIntegers'
import { deepCopy } from '#base/frozen'
import { messageOf } from '#base/messageOf'
import { cut, type RequestTracer } from '#trace/requestTracer'
import type { AdmissionAttributes } from './admission.ts'

/** Changes of larger objects are not recorded: a copy for each plugin would take long. */
const mostBytes = 64 * 1024
const mostLines = 16

export class AdmissionTrace {
  readonly #tracer: RequestTracer
  readonly #stage: 'mutatingAdmission' | 'validatingAdmission'
  readonly #attributes: AdmissionAttributes
  readonly #plugins: TracedPlugin[] = []
  /** The object before the next plugin; absent: changes are not recorded. */
  #before: unknown

  constructor(tracer: RequestTracer, stage: 'mutatingAdmission' | 'validatingAdmission', attributes: AdmissionAttributes) {
    this.#tracer = tracer
    this.#stage = stage
    this.#attributes = attributes
    const { object } = attributes
    if (stage === 'mutatingAdmission' && object && (stringifyExactly(object) ?? '').length <= mostBytes) this.#before = deepCopy(object)
  }

  passed(name: string, durationMs: number): void {
    const changes = this.#before === undefined ? [] : this.#changes(this.#before)
    this.#plugins.push({ name, durationMs, ...(changes.length > 0 ? { changes } : {}) })
  }

  refused(name: string, durationMs: number, error: unknown): void {
    this.#plugins.push({ name, durationMs, refused: cut(messageOf(error)) })
    this.#add(`refused by ${name}`)
  }

  done(): void {
    const changing = this.#plugins.filter(({ changes }) => changes).map(({ name }) => name)
    this.#add(changing.length > 0 ? `changed by ${changing.join(', ')}` : 'passed')
  }

  #add(decision: string): void {
    const durationMs = this.#plugins.reduce((sum, plugin) => sum + plugin.durationMs, 0)
    this.#tracer.add(this.#stage, decision, durationMs, { plugins: this.#plugins })
  }

  #changes(before: unknown): string[] {
    const { object, kind } = this.#attributes
    const named = (value: unknown) => ({
      ...(value as object),
      kind: kind.kind,
      apiVersion: kind.group === '' ? kind.version : `${kind.group}/${kind.version}`,
    })
    const found = fieldChanges(named(before), named(object), { showSecrets: false })
    if (found.length === 0) return []
    this.#before = deepCopy(object)
    return describeChanges(found.slice(0, mostLines))
  }
}
