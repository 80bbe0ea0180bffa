/** What the directive rewrite of a Corefile asks for (L3). Pure. */
import { messageOf } from '#base/messageOf'
import type { NamePattern, RewriteRule } from '../plugins/rewrite.ts'
import { CorefileError, type Directive } from './syntax.ts'

/** `to` has the pattern's groups as {1}. @throws Error when it is no pattern */
export type CompilePattern = (from: string, to: string) => NamePattern

/** Whether reading the Corefile needs a CompilePattern. A quoted word may have backslashes in it. */
export const hasPatterns = (corefile: string) => /regex|answer/i.test(corefile.replaceAll('\\', ''))

const usage = 'rewrite [continue|stop] name [exact|prefix|suffix|substring|regex] FROM TO [answer auto|answer name FROM TO]'

export function rewriteOf({ args, line, options }: Directive, compile: CompilePattern | undefined): RewriteRule {
  const words = [...args]
  const continues = words[0] === 'continue'
  if (continues || words[0] === 'stop') words.shift()
  words.push(...options.flatMap(({ name, args: more }) => [name, ...more]))
  if (words.shift() !== 'name') throw new CorefileError(line, `rewrite: only names are rewritten: ${usage}`)
  const isShort = words.length === 2 || words[2] === 'answer'
  const match = isShort ? 'exact' : words.shift()?.toLowerCase()
  const [from, to, ...answer] = words
  if (!isMatch(match)) throw new CorefileError(line, `rewrite: name ${match} is not served: exact, prefix, suffix, substring and regex are`)
  if (from === undefined || to === undefined) throw new CorefileError(line, `rewrite: FROM and TO are missing: ${usage}`)
  const pattern = (...[one, other]: Parameters<CompilePattern>) => compiled(one, other, { compile, line })
  const ofAnswer = answerPatterns(answer, line, pattern)
  if (match === 'regex') return { match, rewrite: pattern(from, to), continues, ofAnswer }
  const text = (value: string) => value.toLowerCase().replace(match === 'prefix' || match === 'substring' ? /$^/ : /\.$/, '')
  return { match, from: text(from), to: text(to), continues, ofAnswer }
}

/** Rules for the other names of an answer; the name that was asked for is the client's in any case. */
function answerPatterns(words: readonly string[], line: number, pattern: CompilePattern): NamePattern[] {
  const patterns: NamePattern[] = []
  const rest = [...words]
  while (rest.length > 0) {
    const [first, kind, from, to] = rest
    if (first === 'answer' && kind === 'auto') rest.splice(0, 2)
    else if (first === 'answer' && kind === 'name' && from !== undefined && to !== undefined) {
      rest.splice(0, 4)
      patterns.push(pattern(from, to))
    } else throw new CorefileError(line, `rewrite: "${rest.join(' ')}" is not served: ${usage}`)
  }
  return patterns
}

interface Compiling {
  readonly compile: CompilePattern | undefined
  readonly line: number
}

function compiled(from: string, to: string, { compile, line }: Compiling): NamePattern {
  if (!compile) throw new Error('what compiles patterns is not loaded')
  try {
    return compile(from, to)
  } catch (error) {
    throw new CorefileError(line, `rewrite: ${messageOf(error)}`)
  }
}

function isMatch(text: string | undefined): text is RewriteRule['match'] {
  return text === 'exact' || text === 'prefix' || text === 'suffix' || text === 'substring' || text === 'regex'
}
