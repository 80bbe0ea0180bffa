/**
 * Reads declaration files as the compiler writes them: every statement begins at the start of a line, and its other lines are indented or close it. So the
 * exported names, their texts and their comments can be taken without the compiler's API, which TypeScript 7 has only as an unstable one.
 */
import fs from 'node:fs'
import path from 'node:path'

const declared = /^export (?:declare )?(?:abstract )?(?:const|let|function|class|interface|type|enum) ([\w$]+)/
const listed = /^export (type )?\{ ?(.*?) ?\} from '(.+)';$/
const starred = /^export (?:type )?\* (?:as ([\w$]+) )?from '(.+)';$/

/**
 * The exported names of a declaration file, those of other files that it passes on among them.
 * @returns Map from name to `{ name, file, doc, text, kind }`, or `{ name, module, kind: 'module' }` for a whole file under one name
 */
export function exportsOf(file, files = new Map()) {
  const known = files.get(file)
  if (known !== undefined) return known
  const found = new Map()
  files.set(file, found)
  for (const { doc, text } of statementsOf(fs.readFileSync(file, 'utf8'))) {
    const [, name] = declared.exec(text) ?? []
    if (name !== undefined) addDeclaration(found, { name, file, doc, text, kind: kindOf(text) })
    else addPassedOn(found, file, text, files)
  }
  return found
}

/** A function with several signatures is several statements. */
function addDeclaration(found, declaration) {
  const before = found.get(declaration.name)
  if (before === undefined) found.set(declaration.name, declaration)
  else found.set(declaration.name, { ...before, text: `${before.text}\n${declaration.text}`, doc: before.doc || declaration.doc })
}

function addPassedOn(found, file, text, files) {
  const at = (specifier) => path.resolve(path.dirname(file), specifier.replace(/\.js$/, '.d.ts'))
  const [, all, from] = starred.exec(text) ?? []
  if (all !== undefined) found.set(all, { name: all, module: at(from), kind: 'module' })
  else if (from !== undefined) for (const [name, one] of exportsOf(at(from), files)) found.set(name, one)
  const [, , names, of] = listed.exec(text) ?? []
  if (names === undefined) return
  const those = exportsOf(at(of), files)
  for (const part of names.replace(/,$/, '').split(', ')) {
    const [name, alias = name] = part.replace(/^type /, '').split(' as ')
    const one = those.get(name)
    if (one === undefined) throw new Error(`${file}: ${of} does not export ${name}`)
    found.set(alias, { ...one, name: alias, text: alias === name ? one.text : one.text?.replace(new RegExp(`\\b${name}\\b`, 'g'), alias) })
  }
}

function kindOf(text) {
  const [, word] = /^export (?:declare )?(?:abstract )?(\w+)/.exec(text) ?? []
  return word === 'interface' || word === 'type' ? 'type' : word === 'class' ? 'class' : 'value'
}

/** Statements with the comment above each. */
function statementsOf(source) {
  const statements = []
  let doc = ''
  let isComment = false
  for (const line of withoutHeader(source).split('\n')) {
    if (isComment || line.startsWith('/**')) {
      doc = isComment ? `${doc}\n${line}` : line
      isComment = !line.includes('*/')
    } else if (/^[a-z]/.test(line)) {
      statements.push({ doc: commentText(doc), text: line })
      doc = ''
    } else if (line !== '' && statements.length > 0) {
      statements.at(-1).text += `\n${line}`
    }
  }
  return statements
}

/** The comment that describes the file names its layer, or is followed by the imports or another comment. */
function withoutHeader(source) {
  const end = source.indexOf('*/') + '*/'.length
  const isHeader = /\(L\d\b|Published as/.test(source.slice(0, end)) || /^\s*(import |\/\*\*)/.test(source.slice(end))
  return source.startsWith('/**') && isHeader ? source.slice(end) : source
}

/** The words of a comment, a paragraph for each `@throws` and the like. */
function commentText(comment) {
  return comment
    .replace(/^\/\*\*|\*\/$/g, '')
    .split('\n')
    .map((line) => line.replace(/^\s*\* ?/, '').trim())
    .join('\n')
    .replace(/\{@link ([^}]+)\}/g, '`$1`')
    .replace(/(^|\n)@(\w)/g, (_, before, letter) => `${before}${before}${letter.toUpperCase()}`)
    .replace(/(?<!\n)\n(?!\n)/g, ' ')
    .trim()
}
