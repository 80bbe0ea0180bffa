/** Links within the site that lead nowhere: to no file, or to no heading of the page. */

/**
 * @param pages `{ file, source, headings, links }`
 * @param files other files of the site
 * @returns one sentence a fault
 */
export function checkLinks(pages, files) {
  const anchors = new Map(pages.map(({ file, headings }) => [file, new Set(headings.map(({ id }) => id))]))
  return pages.flatMap(({ links }) => links).flatMap((link) => faultOf(link, anchors, files))
}

function faultOf({ source, written, target, anchor, isImage }, anchors, files) {
  if (target === undefined) return isImage ? [`${source}: the image ${written} is of another address: put the file into docs/`] : []
  const known = anchors.get(target)
  if (known === undefined) return files.has(target) ? [] : [`${source}: ${written} leads to no file: ${target}`]
  if (anchor !== '' && !known.has(anchor)) return [`${source}: ${written} leads to no heading of that page`]
  return []
}
