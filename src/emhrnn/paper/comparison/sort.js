for (const head of document.querySelectorAll(".compare thead th[data-sort]")) {
  const button = document.createElement("button");
  button.append(...head.childNodes);
  head.append(button);
  button.addEventListener("click", () => {
    const body = head.closest("table").tBodies[0], rows = [...body.rows];
    const words = head.dataset.sort === "words";
    const down = head.ariaSort ? head.ariaSort === "ascending" : !words;
    const value = (row) => row.cells[head.cellIndex].dataset.value ?? "";
    const order = (a, b) => words ? a.localeCompare(b) : (a === "" ? -Infinity : +a) - (b === "" ? -Infinity : +b);
    rows.sort((a, b) => order(value(a), value(b)) * (down ? -1 : 1));
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.ariaSort = down ? "descending" : "ascending";
    body.append(...rows);
  });
}
