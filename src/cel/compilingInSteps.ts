/**
 * Lets synchronous work that compiles many expressions pause between them (L1, pure). It stops when it has compiled enough, and runs again from its
 * beginning with what it has compiled: validation has no effects, so it asks for the same expressions in the same order. Upstream compiles
 * on a thread of its own, and has no counterpart.
 */
import type { CostEstimate } from './cost/model.ts'
import type { CheckedExpression, CompileResult } from './environment.ts'
import { patternSize } from './patternSize.ts'
import { compiledPatternSize } from './regularExpression.ts'

/** Nodes of syntax trees after which others get a turn. To check and plan one takes about 10 microseconds, and thrice as long in a process that has just started. */
const share = 2000
/** Nodes that the shortest expression counts for. */
const perExpression = 16
/** Characters that count for a node where there is no tree. */
const charactersPerNode = 4

/** Thrown through the work, and caught here. */
class Pause extends Error {}

type Success = Extract<CompileResult, { readonly ok: true }>

/** One expression that the work asked for. */
interface Asked {
  readonly source: string
  readonly result: CompileResult
  /** What compiling costs, in nodes. */
  readonly cost: number
  letGo(): void
}

/** Nodes that an instruction of a regular expression counts for. */
const nodesPerInstruction = 1.5

/** Compiles and returns the cost of it. */
function measured(source: string, compile: () => CompileResult): { readonly result: CompileResult; readonly cost: number } {
  const patterns = compiledPatternSize()
  const result = compile()
  const nodes = result.ok ? result.checked.types.size : source.length / charactersPerNode
  return { result, cost: perExpression + nodes + (compiledPatternSize() - patterns) * nodesPerInstruction }
}

/** For work that brings programs: they stay. */
class Kept implements Asked {
  readonly source: string
  readonly result: CompileResult
  readonly cost: number

  constructor(source: string, compile: () => CompileResult) {
    this.source = source
    const { result, cost } = measured(source, compile)
    this.result = result
    this.cost = cost
  }

  letGo(): void {}
}

/** For work that brings faults: between runs only what validation wants to know is held, as the trees take a hundred times the text. */
class Checked implements Asked {
  readonly source: string
  readonly #compile: () => CompileResult
  #whole: Success | undefined
  #estimate: CostEstimate | undefined
  readonly result: CompileResult
  readonly cost: number

  /** `spend`: called before an expression that was let go is compiled again. */
  constructor(source: string, compile: () => CompileResult, spend: (cost: number) => void) {
    this.source = source
    this.#compile = compile
    const { result: first, cost } = measured(source, compile)
    this.cost = cost
    if (!first.ok) {
      this.result = first
      return
    }
    this.#whole = first
    const whole = (): Success => {
      if (this.#whole) return this.#whole
      spend(this.cost)
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

/** Other work with a result. */
class Done {
  readonly source: string
  readonly value: unknown

  constructor(source: string, value: unknown) {
    this.source = source
    this.value = value
  }

  letGo(): void {}
}

class Recording {
  readonly #keepsPrograms: boolean
  readonly #compiled: (Asked | Done)[] = []
  /** Those before it hold no trees, unless they were evaluated again. */
  #held = 0
  /** The expression that the work asks for next. */
  #position = 0
  #done = 0
  /** False when the work asks for other expressions as it runs again: it would never end if it paused. */
  #repeats = true

  constructor(keepsPrograms: boolean) {
    this.#keepsPrograms = keepsPrograms
  }

  begin(): void {
    for (; this.#held < this.#compiled.length; this.#held++) this.#compiled[this.#held]?.letGo()
    this.#position = 0
    this.#done = 0
  }

  get isShareDone(): boolean {
    return this.#done >= share
  }

  #pauseWhenDone(): void {
    if (this.#repeats && this.isShareDone) throw new Pause()
  }

  readonly #spend = (cost: number): void => {
    this.#pauseWhenDone()
    this.#done += cost
  }

  compile(source: string, compile: () => CompileResult): CompileResult {
    const known = this.#compiled[this.#position]
    if (known && known.source !== source) this.#repeats = false
    if (!this.#repeats) return compile()
    if (!known) {
      this.#pauseWhenDone()
      const compiled = this.#keepsPrograms ? new Kept(source, compile) : new Checked(source, compile, this.#spend)
      this.#compiled.push(compiled)
      this.#done += compiled.cost
    }
    return (this.#compiled[this.#position++] as Asked).result
  }

  work<T>(name: string, cost: CostOf<T>, work: () => T): T {
    const known = this.#compiled[this.#position]
    if (known && known.source !== name) this.#repeats = false
    if (!this.#repeats) return work()
    if (!known) {
      this.#pauseWhenDone()
      const value = work()
      this.#compiled.push(new Done(name, value))
      this.#done += typeof cost === 'number' ? cost : cost(value)
    }
    return (this.#compiled[this.#position++] as Done).value as T
  }
}

type CostOf<T> = number | ((result: T) => number)

let current: Recording | undefined

/**
 * Pauses after each share of compiled nodes, the last one included. `work` is synchronous, without effects, and asks for the same expressions whenever it runs.
 * @param keepsPrograms whether what it returns has programs that are run afterwards
 */
export function* compilingInSteps<T>(work: () => T, { keepsPrograms = false } = {}): Generator<undefined, T> {
  const recording = new Recording(keepsPrograms)
  for (;;) {
    const outer = current
    let result: { readonly value: T } | undefined
    recording.begin()
    current = recording
    try {
      result = { value: work() }
    } catch (error) {
      if (!(error instanceof Pause)) throw error
    } finally {
      current = outer
    }
    if (!result) yield
    else {
      // What follows the work begins in a turn of its own.
      if (recording.isShareDone) yield
      return result.value
    }
  }
}

/** Compiles, unless the running work has compiled it before a pause. */
export function compileOnce(source: string, compile: () => CompileResult): CompileResult {
  return current ? current.compile(source, compile) : compile()
}

/**
 * Does a part of the running work, unless it has been done before a pause.
 * @param cost in nodes; a function where the result shows it
 * @param work compiles no expression and has no part of its own: its result is recorded as a whole
 */
export function workOnce<T>(name: string, cost: CostOf<T>, work: () => T): T {
  return current ? current.work(name, cost, work) : work()
}

/** What compiling a pattern costs, in nodes. */
export function patternCost(pattern: string): number {
  return perExpression + patternSize(pattern) * nodesPerInstruction
}
