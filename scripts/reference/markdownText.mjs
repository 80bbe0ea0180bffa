/** Text from the source as Markdown that shows it letter by letter. */

/** Signs that would begin HTML or emphasis are escaped; what stands in backticks stays as it is. */
export function asText(text) {
  return text
    .split(/(`[^`]*`)/)
    .map((part, at) => (at % 2 === 1 ? part : part.replace(/[<>*_[\]]/g, (sign) => `\\${sign}`)))
    .join('')
}

/** The same in a cell of a table. */
export function asCell(text) {
  return asText(text)
    .replaceAll('|', '\\|')
    .replace(/\s*\n\s*/g, ' ')
}

export const codeCell = (text) => `\`${text.replaceAll('|', '\\|')}\``

/** @param rows of cells that are Markdown already */
export function tableOf(head, rows) {
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

export const generated = 'This page is generated from the source: `make reference` writes it.'
