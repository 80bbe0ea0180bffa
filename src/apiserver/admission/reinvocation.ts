/**
 * The memory of a mutating plugin between the two rounds of mutating admission (L3): which webhooks or policies to call again because a later one
 * changed the object.
 * Upstream: apiserver/pkg/admission/plugin/webhook/mutating/reinvocationcontext.go, plugin/policy/mutating/reinvocationcontext.go (v1.36).
 */
import { semanticEqual } from '#api/machinery/equality'
import type { KubeObject } from '#api/machinery/meta'
import { deepCopy } from '#base/frozen'
import type { AdmissionAttributes, Reinvocation } from './admission.ts'

export class RoundMemory {
  isSecondRound = false
  #last: unknown
  #invoked = new Set<string>()
  readonly #due = new Set<string>()

  /** Records a part to call again if the object changes from here on. */
  invoked(part: string): void {
    this.#invoked.add(part)
  }

  isDue(part: string): boolean {
    return this.#due.has(part)
  }

  /** Called after a change: all recorded parts are due for the second round. */
  changed(): void {
    for (const part of this.#invoked) this.#due.add(part)
    this.#invoked = new Set()
  }

  /** Keeps the object at the plugin's end for a comparison; only plugins with recorded parts need a copy. */
  keep(object: KubeObject | undefined): void {
    this.#last = this.#invoked.size > 0 && object ? deepCopy(object) : undefined
  }

  isChangedSince(object: KubeObject | undefined): boolean {
    return this.#last !== undefined && !semanticEqual(this.#last, object)
  }
}

/** The plugin's memory in this request; at the start of the second round it compares the object with the kept one. */
export function roundMemory(attributes: AdmissionAttributes, plugin: string): RoundMemory {
  const { kept, isSecondRound } = contextOf(attributes)
  let memory = kept.get(plugin) as RoundMemory | undefined
  if (!memory) {
    memory = new RoundMemory()
    kept.set(plugin, memory)
  }
  memory.isSecondRound = isSecondRound
  if (isSecondRound && memory.isChangedSince(attributes.object)) memory.changed()
  return memory
}

export function askForSecondRound(attributes: AdmissionAttributes, memory: RoundMemory): void {
  memory.changed()
  contextOf(attributes).wanted = true
}

function contextOf(attributes: AdmissionAttributes): Reinvocation {
  attributes.reinvocation ??= { wanted: false, isSecondRound: false, kept: new Map() }
  return attributes.reinvocation
}
