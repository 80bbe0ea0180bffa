/** Whether a device matches a selector of a class or a request (L3): compiled once for each expression. Upstream: structured allocator selectorsMatch. */
import { compileSelector } from '#api/cel/device'
import { deviceValue, selectorMatches } from '#api/cel/deviceValue'
import type { Device, DeviceSelector } from '#api/gen/types/resource.v1'
import type { Frozen } from '#api/machinery/meta'
import { messageOf } from '#base/messageOf'
import type { CompileResult } from '#cel/environment'
import type { Value } from '#cel/values'

const maxCompiled = 1000
/** The cost limit does not bound the time: logical operators cost nothing. A selector at the cost limit takes about 20 ms. */
const maxEvaluationMs = 150

/** An evaluation took too long, because of the selector or because the machine is busy. */
export class InterruptedError extends Error {}

export class DeviceSelectors {
  readonly #nowMs: () => number
  readonly #compiled = new Map<string, CompileResult>()
  readonly #values = new WeakMap<Frozen<Device>, Value>()

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  /**
   * @param index of the selector in its class or request
   * @param owner the class or claim, as errors name it
   * @throws Error when the selector does not compile or fails on the device, InterruptedError when it takes too long
   */
  match({ cel }: Frozen<DeviceSelector>, index: number, device: Frozen<Device>, driver: string, owner: string): boolean {
    if (!cel) throw new Error(`${owner}: selector #${index}: CEL expression empty (unsupported selector type?)`)
    const compiled = this.#compile(cel.expression)
    if (!compiled.ok) throw new Error(`${owner}: selector #${index}: CEL compile error: ${compiled.message}`)
    const untilMs = this.#nowMs() + maxEvaluationMs
    let isInterrupted = false
    const isTooLong = () => {
      isInterrupted = this.#nowMs() >= untilMs
      return isInterrupted
    }
    try {
      return selectorMatches(compiled, this.#valueOf(device, driver), isTooLong)
    } catch (error) {
      const message = `${owner}: selector #${index}: CEL runtime error: ${messageOf(error)}`
      throw isInterrupted ? new InterruptedError(message, { cause: error }) : new Error(message, { cause: error })
    }
  }

  #compile(expression: string): CompileResult {
    const known = this.#compiled.get(expression)
    if (known) return known
    const { compiled } = compileSelector(expression)
    for (const oldest of this.#compiled.keys()) {
      if (this.#compiled.size < maxCompiled) break
      this.#compiled.delete(oldest)
    }
    this.#compiled.set(expression, compiled)
    return compiled
  }

  #valueOf(device: Frozen<Device>, driver: string): Value {
    let value = this.#values.get(device)
    if (value === undefined) {
      value = deviceValue(device, driver)
      this.#values.set(device, value)
    }
    return value
  }
}
