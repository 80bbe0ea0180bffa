/** Comma-separated values as Go's encoding/csv reads them (L3): quoted fields, doubled quotes, no empty lines. */

/** @throws Error with Go's words for a stray quote */
export function parseCsv(text: string): string[][] {
  const records: string[][] = []
  let at = 0
  let line = 1
  const fail = (what: string): never => {
    throw new Error(`parse error on line ${line}: ${what}`)
  }
  const quoted = (): string => {
    let value = ''
    for (at++; at < text.length; at++) {
      if (text[at] === '\n') line++
      if (text[at] !== '"') value += text[at]
      else if (text[at + 1] === '"') {
        value += '"'
        at++
      } else {
        at++
        return value
      }
    }
    return fail('extraneous or missing " in quoted-field')
  }
  const bare = (): string => {
    const end = /[,\n]|$/.exec(text.slice(at))?.index ?? 0
    const value = text.slice(at, at + end).replace(/\r$/, '')
    if (value.includes('"')) fail('bare " in non-quoted field')
    at += end
    return value
  }
  while (at < text.length) {
    const record: string[] = []
    for (;;) {
      const isQuoted = text[at] === '"'
      record.push(isQuoted ? quoted() : bare())
      if (isQuoted && text[at] === '\r' && text[at + 1] === '\n') at++
      if (text[at] !== ',') break
      at++
    }
    if (at < text.length && text[at] !== '\n') fail('extraneous or missing " in quoted-field')
    at++
    line++
    if (record.length > 1 || record[0] !== '') records.push(record)
  }
  return records
}
