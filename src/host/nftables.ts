/**
 * nftables tables as data (L1): renders a table's chains, sets and maps as a script for nft(8), and only what differs from the state before. Rendering is
 * pure; NftTable remembers what the kernel has. A user of it owns the whole table. Upstream's counterpart: sigs.k8s.io/knftables.
 */
import { createHash } from 'node:crypto'
import { sameLines } from '#base/sameLines'
import { check, type Exec } from './exec.ts'
import { atOnce, inTimeSlices, type Turns } from './timeSlices.ts'

export type NftFamily = 'ip' | 'ip6' | 'inet'

export interface TableContents {
  /** Fixed chains, sets and maps that the table always has, in nft's syntax. When they change, the whole table is replaced. */
  readonly frame: string
  /** Chain → its rules. */
  readonly chains: ReadonlyMap<string, readonly string[]>
  /** Set → its declaration. Its elements are the kernel's, as those of an affinity set are. */
  readonly sets: ReadonlyMap<string, string>
  /** Map or set of the frame → key → verdict; an element of a set has the verdict ''. */
  readonly maps: ReadonlyMap<string, ReadonlyMap<string, string>>
}

export interface NftTable {
  /** Brings the kernel's table to the contents in one transaction. After a failure the next call writes the whole table. */
  apply(contents: TableContents): Promise<void>
  /** Removes the table. An absent table is fine. */
  remove(): Promise<void>
}

/**
 * @param name the table's, such as `kube-proxy`
 * @param turns scripts are rendered in short turns of the event loop; absent: at once
 */
export function createNftTable(exec: Exec, family: NftFamily, name: string, turns?: Turns): NftTable {
  const table = `${family} ${name}`
  let applied: TableContents | undefined
  const load = (script: string) => check(exec, 'nft', ['-f', '-'], { input: script })
  return {
    apply: async (wanted) => {
      const script = turns ? await inTimeSlices(renderSteps(table, wanted, applied), turns) : renderTable(table, wanted, applied)
      if (!script) return
      // The transaction may have failed because the kernel's table is not as it was left.
      applied = undefined
      await load(script)
      applied = wanted
    },
    remove: async () => {
      applied = undefined
      await load(`add table ${table}\ndelete table ${table}\n`)
    },
  }
}

/** Why this host cannot hold tables of the family; undefined when it can. */
export async function nftObstacle(exec: Exec, family: NftFamily): Promise<string | undefined> {
  const { code, stderr } = await exec.run('nft', ['--check', 'add', 'table', family, 'skiff-check'])
  if (code === -1) return 'nft is not installed'
  return code === 0 ? undefined : `nft does not work here: ${stderr.trim() || `exit ${code}`}`
}

/** Eight base-32 characters of a SHA-256: they keep the names of a node's chains apart, also where a name is cut. */
export function nftHash(text: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
  const digest = createHash('sha256').update(text).digest()
  return [...digest.subarray(0, 8)].map((byte) => alphabet[byte & 31]).join('')
}

/**
 * The script from `before` to `wanted`; everything when there is no before. Empty when nothing changes. One transaction: additions first,
 * then map elements, then removals, so that nothing refers to what is not there.
 */
export function renderTable(table: string, wanted: TableContents, before: TableContents | undefined): string {
  return atOnce(renderSteps(table, wanted, before))
}

function* renderSteps(table: string, wanted: TableContents, before: TableContents | undefined): Generator<undefined, string> {
  const kept = before && canChange(before, wanted) ? before : undefined
  const lines: string[] = []
  if (!kept) lines.push(`add table ${table}`, `delete table ${table}`, `table ${table} {${wanted.frame}}`)
  for (const [name, declaration] of wanted.sets) if (kept?.sets.get(name) !== declaration) lines.push(`add set ${table} ${nftName(name)} ${declaration}`)
  yield
  // All chains first: rules may jump to any of them.
  const changed = [...wanted.chains].filter(([name, rules]) => !sameLines(kept?.chains.get(name), rules))
  for (const [name] of changed) if (!kept?.chains.has(name)) lines.push(`add chain ${table} ${nftName(name)}`)
  for (const [name, rules] of changed) {
    if (kept?.chains.has(name)) lines.push(`flush chain ${table} ${nftName(name)}`)
    for (const rule of rules) lines.push(`add rule ${table} ${nftName(name)} ${withNftNames(rule)}`)
    yield
  }
  for (const [map, elements] of wanted.maps) {
    lines.push(...elementChanges(table, map, elements, kept?.maps.get(map)))
    yield
  }
  for (const name of kept?.chains.keys() ?? []) if (!wanted.chains.has(name)) lines.push(`flush chain ${table} ${nftName(name)}`)
  for (const name of kept?.chains.keys() ?? []) if (!wanted.chains.has(name)) lines.push(`delete chain ${table} ${nftName(name)}`)
  for (const name of kept?.sets.keys() ?? []) if (!wanted.sets.has(name)) lines.push(`delete set ${table} ${nftName(name)}`)
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`
}

/** A frame, and the declaration of a set that exists, cannot be changed in place. */
function canChange(before: TableContents, wanted: TableContents): boolean {
  return before.frame === wanted.frame && [...wanted.sets].every(([name, declaration]) => (before.sets.get(name) ?? declaration) === declaration)
}

function elementChanges(table: string, map: string, wanted: ReadonlyMap<string, string>, before: ReadonlyMap<string, string> | undefined): string[] {
  // Holders of many elements keep the map of those that have not changed.
  if (wanted === before) return []
  const removed = [...(before ?? [])].filter(([key, verdict]) => wanted.get(key) !== verdict).map(([key]) => key)
  const added = [...wanted].filter(([key, verdict]) => before?.get(key) !== verdict)
  const lines: string[] = []
  if (removed.length > 0) lines.push(`delete element ${table} ${map} { ${removed.join(', ')} }`)
  if (added.length > 0)
    lines.push(`add element ${table} ${map} { ${added.map(([key, verdict]) => (verdict ? `${key} : ${withNftNames(verdict)}` : key)).join(', ')} }`)
  return lines
}

/** Names with slashes are kept within what nft reads as one word; it has no quoting for names, so other characters become '-'. */
export function nftName(name: string): string {
  return name.replace(/[^A-Za-z0-9_./-]/g, '-').slice(0, 120)
}

/** The names in goto, jump and @set of a rule. */
function withNftNames(rule: string): string {
  return rule.replace(
    /(goto |jump |@)(\S+)/g,
    (_, word: string, name: string) => `${word}${nftName(name.replace(/[,}]$/, ''))}${/[,}]$/.exec(name)?.[0] ?? ''}`,
  )
}
