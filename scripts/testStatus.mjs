/** Writes docs/status.md: each row of the feature map that a test of this run is named after, with its sentence (scripts/rows.json) and its tests. */
import fs from 'node:fs'
import path from 'node:path'

const rowIds = /\b(?:ARC|ETC|API|AUN|AUZ|ADM|CRD|CTL|CGO|SCH|KUB|CRI|NET|SVC|ING|NPO|MSH|STO|RES|AUT|HA|OBS|SDR|LRN|DRA|EXP)-\d+\b|\bX\d{1,2}\b/g
const sentences = JSON.parse(fs.readFileSync(new URL('rows.json', import.meta.url), 'utf8'))
const mostNames = 6
const cell = (text) => text.replace(/\|/g, '\\|')

/** @param all lines of the reporter: `{ name, result }` */
export function writeStatus(file, all) {
  const rows = new Map()
  for (const test of all)
    for (const id of test.name.match(rowIds) ?? []) {
      const row = rows.get(id) ?? { passed: [], others: [] }
      rows.set(id, row)
      ;(test.result === 'pass' ? row.passed : row.others).push(test)
    }
  const sorted = [...rows].sort(([a], [b]) => a.localeCompare(b, 'en', { numeric: true }))
  const text = `# Status

\`make status\` writes this page from a test run. A row of the feature map is listed when a test named after it ran; nothing is listed by hand.

${behaviourCounts(all)}

| row | what it asks for | state | passing tests | tests |
|---|---|---|---|---|
${sorted.map(([id, row]) => line(id, row)).join('\n')}
`
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, text)
  console.log(`${rows.size} rows written to ${file}`)
}

function line(id, { passed, others }) {
  const state = others.some((test) => test.result === 'fail') ? 'failing' : passed.length > 0 ? 'passing' : 'skipped here'
  const names = [...passed, ...others].map((test) => cell(test.name)).slice(0, mostNames)
  const more = passed.length + others.length - names.length
  return `| ${id} | ${cell(sentences[id] ?? '')} | ${state} | ${passed.length} | ${names.join('<br>')}${more > 0 ? `<br>and ${more} more` : ''} |`
}

/** How many of upstream's conformance behaviours that need containers passed; their tests are marked [K]. */
function behaviourCounts(all) {
  const behaviours = all.filter((test) => test.name.includes(' [K] sig-'))
  const count = (result) => behaviours.filter((test) => test.result === result).length
  return `Of upstream's 249 conformance behaviours that need containers ${behaviours.length} are tests here: ${count('pass')} passed, ${count('fail')} failed, ${count('skip')} were skipped on this machine (the run names the reason).`
}
