/**
 * No map that a client's keys enter has a prototype. Where the compiler knows a key only as some text, an ordinary object may not be asked for it:
 * tables and collections are bare maps (base/bareMap), and maps of the API are read by ownValue. Needs types, which the linter does not have.
 */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import {
  type ElementAccessExpression,
  isAsExpression,
  isBinaryExpression,
  isElementAccessExpression,
  isIdentifier,
  isNonNullExpression,
  isObjectLiteralExpression,
  isParenthesizedExpression,
  isPropertyAccessExpression,
  isSatisfiesExpression,
  isVariableDeclaration,
  type Node,
  SyntaxKind,
} from 'typescript/unstable/ast'
import { API, type Project, TypeFlags } from 'typescript/unstable/sync'

const root = path.resolve(import.meta.dirname, '../..')

/** Maps of the API that its users fill with keys of their choice. */
const apiMaps: ReadonlySet<string> = new Set(['labels', 'annotations', 'data', 'nodeSelector'])

/** Files whose keys cannot be names that objects inherit, or that handle these themselves. */
const exempt: readonly (readonly [file: string, why: string])[] = [
  ['base/bareMap.ts', 'makes them'],
  ['base/frozen.ts', 'defines __proto__ instead of assigning it'],
  ['grpc/protoMessage.ts', 'keys are the fields of our own messages, and those of maps are defined instead of assigned'],
  ['api/managedFields/', 'keys begin with f:, k:, v: or i:, or are a dot'],
]

/** @returns file:line of each place that breaks the rule */
function offenders(project: Project, files: readonly string[]): string[] {
  return files.flatMap((file) => {
    const source = project.program.getSourceFile(file)
    assert.ok(source, file)
    const computed: ElementAccessExpression[] = []
    const tests: Node[] = []
    const visit = (node: Node): void => {
      if (isElementAccessExpression(node)) computed.push(node)
      if (isBinaryExpression(node) && node.operatorToken.kind === SyntaxKind.InKeyword) tests.push(node)
      node.forEachChild(visit)
    }
    visit(source)
    const keys = [...computed.map((node) => node.argumentExpression), ...tests.map((node) => (isBinaryExpression(node) ? node.left : node))]
    const types = keys.length > 0 ? project.checker.getTypeAtLocation(keys) : []
    const isText = (index: number) => ((types[index]?.flags ?? 0) & TypeFlags.String) !== 0
    const found = [
      ...computed.filter((node, index) => isText(index) && isOrdinary(project, node, source.text)),
      ...tests.filter((_, index) => isText(computed.length + index)),
    ]
    return found.map((node) => `${file}:${source.text.slice(0, node.getStart(source)).split('\n').length}`)
  })
}

function isOrdinary(project: Project, node: ElementAccessExpression, text: string): boolean {
  const map = plain(node.expression)
  if (isPropertyAccessExpression(map)) return apiMaps.has(map.name.text)
  if (!isIdentifier(map)) return false
  // Asked before, in the same statement: the key is the object's own.
  if (text.slice(node.pos - 80, node.pos).includes(`Object.hasOwn(${map.text},`)) return false
  let symbol = project.checker.getSymbolAtLocation(map)
  let declared = symbol?.valueDeclaration?.resolve(project)
  if (symbol && !declared) {
    symbol = project.checker.getAliasedSymbol(symbol)
    declared = symbol.valueDeclaration?.resolve(project)
  }
  if (!declared || !isVariableDeclaration(declared) || !declared.initializer) return false
  return isObjectLiteralExpression(plain(declared.initializer))
}

function plain(node: Node): Node {
  return isAsExpression(node) || isSatisfiesExpression(node) || isParenthesizedExpression(node) || isNonNullExpression(node) ? plain(node.expression) : node
}

/** Opens the project of a folder and asks of its files, whose names begin with `below`. */
function ask(folder: string, below: string): { readonly count: number; readonly found: readonly string[] } {
  const api = new API({ cwd: folder })
  try {
    const [project] = api.updateSnapshot({ openProjects: [path.join(folder, 'tsconfig.json')] }).getProjects()
    assert.ok(project)
    const inside = `${fs.realpathSync(folder)}/${below}`
    const isChecked = (file: string) => file.startsWith(inside) && !/\.test\.ts$|\/api\/gen\/|\/grpc\/proto\//.test(file)
    const files = project.program.getSourceFileNames().filter((file) => isChecked(file) && !exempt.some(([start]) => file.startsWith(`${inside}${start}`)))
    return { count: files.length, found: offenders(project, files).map((place) => place.slice(inside.length)) }
  } finally {
    api.close()
  }
}

test('style: no ordinary object is asked for a key that is some text', () => {
  const { count, found } = ask(root, 'src/')
  assert.deepEqual(found, [])
  assert.ok(count > 400)
})

test('style: the check of maps names each planted fault, and nothing else', () => {
  const folder = fs.mkdtempSync(path.join(tmpdir(), 'skiff-prototypes-'))
  const lines = [
    'declare function bareMap<T>(entries: T): T',
    'declare const key: string, object: { readonly metadata: { readonly labels: Readonly<Record<string, string>> } }',
    'const table: Record<string, number> = { a: 1 }, bare: Record<string, number> = bareMap({ a: 1 })',
    'export const read = table[key]',
    'table[key] = 1',
    'export const label = object.metadata.labels[key]',
    'export const there = key in bare',
    'export const [one, two] = [bare[key], Object.hasOwn(table, key) ? table[key] : 0]',
    "export const known = table['a']",
    "export const either = table[key === 'a' ? 'a' : 'b']",
    'export const { length } = [1][Number(key)] ? key : key',
  ]
  try {
    fs.mkdirSync(path.join(folder, 'src'))
    fs.writeFileSync(path.join(folder, 'src/planted.ts'), lines.join('\n'))
    fs.writeFileSync(path.join(folder, 'tsconfig.json'), '{"compilerOptions":{"strict":true,"types":[]},"include":["src"]}')
    assert.deepEqual([...ask(folder, 'src/').found].sort(), ['planted.ts:4', 'planted.ts:5', 'planted.ts:6', 'planted.ts:7'])
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
})
