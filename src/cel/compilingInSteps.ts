/**
 * Lets synchronous work that compiles many expressions pause between them (L1, pure). It stops when it has compiled enough, and runs again from its
 * beginning with what it has compiled: validation has no effects, so it asks for the same expressions in the same order. Upstream compiles
 * on a thread of its own, and has no counterpart.
 */
import type { CostEstimate } from './cost/model.ts'
import type { CheckedExpression, CompileResult } from './environment.ts'

/** Compiled text, in UTF-16 units, after which others get a turn. */
const share = 16 * 1024
/** What the shortest expression counts for. */
const perExpression = 128

/** Thrown through the work, and caught here. */
class Pause extends Error {}

type Success = Extract<CompileResult, { readonly ok: true }>

/** One expression that the work asked for. Between runs only what validation wants to know is held: the trees take a hundred times the text. */
class Compiled {
  readonly source: string
  readonly #compile: () => CompileResult
  #whole: Success | undefined
  #estimate: CostEstimate | undefined
  readonly result: CompileResult

  /** `spend`: called before an expression that was let go is compiled again. */
  constructor(source: string, compile: () => CompileResult, spend: (source: string) => void) {
    this.source = source
    this.#compile = compile
    const first = compile()
    if (!first.ok) {
      this.result = first
      return
    }
    this.#whole = first
    const whole = (): Success => {
      if (this.#whole) return this.#whole
      spend(source)
      const again = this.#compile()
      if (!again.ok) throw new Error(`an expression compiles only once: ${again.message}`)
      this.#whole = again
      return again
    }
    const { variables } = first
    const { resultType } = first.checked
    const checked: CheckedExpression = {
      ...{ source, resultType },
      get expression() {
        return whole().checked.expression
      },
      get types() {
        return whole().checked.types
      },
      get references() {
        return whole().checked.references
      },
    }
    // A repeated run compiles the same expression at the same place with the same sizes.
    const estimateCost: Success['estimateCost'] = (sizes) => (this.#estimate ??= whole().estimateCost(sizes))
    this.result = { ok: true, checked, variables, program: { evaluate: (...given) => whole().program.evaluate(...given) }, estimateCost }
  }

  letGo(): void {
    this.#whole = undefined
  }
}

class Recording {
  readonly #compiled: Compiled[] = []
  /** Those before it hold no trees, unless they were evaluated again. */
  #held = 0
  /** The expression that the work asks for next. */
  #position = 0
  #done = 0
  /** Without it the work asked for other expressions when it ran again, and could go on so for ever. */
  #repeats = true

  begin(): void {
    for (; this.#held < this.#compiled.length; this.#held++) this.#compiled[this.#held]?.letGo()
    this.#position = 0
    this.#done = 0
  }

  readonly #spend = (source: string): void => {
    if (this.#repeats && this.#done >= share) throw new Pause()
    this.#done += source.length + perExpression
  }

  compile(source: string, compile: () => CompileResult): CompileResult {
    const known = this.#compiled[this.#position]
    if (known && known.source !== source) this.#repeats = false
    if (!this.#repeats) return compile()
    if (!known) {
      this.#spend(source)
      this.#compiled.push(new Compiled(source, compile, this.#spend))
    }
    return (this.#compiled[this.#position++] as Compiled).result
  }
}

let current: Recording | undefined

/** Pauses after each share of compiled text. `work` is synchronous, without effects, and asks for the same expressions whenever it runs. */
export function* compilingInSteps<T>(work: () => T): Generator<undefined, T> {
  const recording = new Recording()
  for (;;) {
    const outer = current
    recording.begin()
    current = recording
    try {
      return work()
    } catch (error) {
      if (!(error instanceof Pause)) throw error
    } finally {
      current = outer
    }
    yield
  }
}

/** Compiles, unless the running work has compiled it before a pause. */
export function compileOnce(source: string, compile: () => CompileResult): CompileResult {
  return current ? current.compile(source, compile) : compile()
}
