/**
 * Fills in the templates of Stages (testing): evaluates what templateSyntax.ts has read against an object. As in Go, a field of something that is
 * not there is nothing, and nothing is false. The generic functions are templateFunctions.ts; those that know of nodes and pods come from the caller.
 * Upstream: Go text/template (exec.go), kwok pkg/utils/gotpl.
 */
import { parseYaml } from '#api/machinery/yaml'
import { isTrue, type TemplateFunctions, textOf } from './templateFunctions.ts'
import { type Operand, type Pipe, parseTemplate, TemplateError, type TemplateNode } from './templateSyntax.ts'

export interface Template {
  /** @throws TemplateError when a function cannot do what it is asked */
  text(object: unknown, functions: TemplateFunctions): string
  /** The text read as YAML. */
  value(object: unknown, functions: TemplateFunctions): unknown
}

/** What a few nested ranges over a large list can make. */
const maxTextLength = 4 * 1024 * 1024

/**
 * @param names of the functions that will be there
 * @throws TemplateError
 */
export function compileTemplate(source: string, names: ReadonlySet<string>): Template {
  const nodes = parseTemplate(source, (name) => names.has(name))
  const text = (object: unknown, functions: TemplateFunctions) => {
    const run = new Run(object, functions)
    run.play(nodes, object, new Scope(undefined))
    return run.text
  }
  return { text, value: (object, functions) => parseYaml(text(object, functions)) }
}

class Scope {
  readonly #outer: Scope | undefined
  readonly #variables = new Map<string, unknown>()

  constructor(outer: Scope | undefined) {
    this.#outer = outer
  }

  declare(name: string, value: unknown): void {
    this.#variables.set(name, value)
  }

  assign(name: string, value: unknown): void {
    this.#holder(name).#variables.set(name, value)
  }

  get(name: string): unknown {
    return this.#holder(name).#variables.get(name)
  }

  #holder(name: string): Scope {
    if (this.#variables.has(name)) return this
    if (!this.#outer) throw new TemplateError(`variable ${name} is not declared`)
    return this.#outer.#holder(name)
  }
}

class Run {
  readonly #object: unknown
  readonly #functions: TemplateFunctions
  text = ''

  constructor(object: unknown, functions: TemplateFunctions) {
    this.#object = object
    this.#functions = functions
  }

  play(nodes: readonly TemplateNode[], dot: unknown, scope: Scope): void {
    for (const node of nodes) this.#playOne(node, dot, scope)
  }

  #playOne(node: TemplateNode, dot: unknown, scope: Scope): void {
    if (node.type === 'text') {
      this.#write(node.text)
      return
    }
    const value = this.#pipe(node.pipe, dot, scope)
    if (node.type === 'print') this.#write(textOf(value))
    else if (node.type === 'set') node.declares ? scope.declare(node.name, value) : scope.assign(node.name, value)
    else if (node.type === 'range') this.#range(node, value, dot, scope)
    else if (isTrue(value)) this.play(node.then, node.type === 'with' ? value : dot, new Scope(scope))
    else this.play(node.otherwise, dot, new Scope(scope))
  }

  #range(node: Extract<TemplateNode, { type: 'range' }>, value: unknown, dot: unknown, scope: Scope): void {
    const entries = entriesOf(value)
    for (const [key, item] of entries) {
      const within = new Scope(scope)
      const [first, second] = node.names
      if (second !== undefined && first !== undefined) {
        within.declare(first, key)
        within.declare(second, item)
      } else if (first !== undefined) within.declare(first, item)
      this.play(node.then, item, within)
    }
    if (entries.length === 0) this.play(node.otherwise, dot, new Scope(scope))
  }

  #write(text: string): void {
    this.text += text
    if (this.text.length > maxTextLength) throw new TemplateError(`the template gives more than ${maxTextLength} characters`)
  }

  #pipe(pipe: Pipe, dot: unknown, scope: Scope): unknown {
    let before: readonly unknown[] = []
    for (const command of pipe) {
      const [first, ...rest] = command
      if (!first) continue
      if (first.type === 'function') before = [this.#call(first.name, [...rest.map((operand) => this.#operand(operand, dot, scope)), ...before])]
      else if (before.length > 0) throw new TemplateError('only a function can follow "|"')
      else before = [this.#operand(first, dot, scope)]
    }
    return before[0]
  }

  #operand(operand: Operand, dot: unknown, scope: Scope): unknown {
    if (operand.type === 'literal') return operand.value
    if (operand.type === 'function') return this.#call(operand.name, [])
    const { of, fields } = operand
    const root = of === 'dot' ? dot : 'pipe' in of ? this.#pipe(of.pipe, dot, scope) : of.variable === '$' ? this.#object : scope.get(of.variable)
    return fields.reduce(fieldOf, root)
  }

  #call(name: string, args: readonly unknown[]): unknown {
    const call = this.#functions[name]
    if (!call) throw new TemplateError(`function "${name}" is not supported`)
    return call(...args)
  }
}

function fieldOf(value: unknown, name: string): unknown {
  if (value === null || value === undefined) return undefined
  if (typeof value !== 'object' || Array.isArray(value)) throw new TemplateError(`.${name}: ${JSON.stringify(value).slice(0, 80)} has no fields`)
  return Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined
}

/** Of maps in the order of their keys. */
function entriesOf(value: unknown): readonly (readonly [unknown, unknown])[] {
  if (value === null || value === undefined) return []
  if (Array.isArray(value)) return value.map((item, index) => [index, item])
  if (typeof value !== 'object') throw new TemplateError(`range over ${JSON.stringify(value)}: it is neither a list nor a map`)
  return Object.entries(value).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
}
