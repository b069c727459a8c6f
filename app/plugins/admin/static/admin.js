// What scripts add to the admin pages, which work without them: copying, selecting, dialogs,
// the search with "/", and a warning about unsaved changes.
"use strict";

const language = document.documentElement.lang;
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const status = () => {
  let line = document.querySelector("[role=status]");
  if (!line) {
    line = document.createElement("p");
    line.className = "status";
    line.setAttribute("role", "status");
    document.querySelector("main").prepend(line);
  }
  return line;
};

let clearing;
function say(text) {
  const line = status();
  clearTimeout(clearing);
  line.className = "status said";
  line.textContent = text;
  clearing = setTimeout(() => line.replaceChildren(), 4000);
}

// Copying
for (const button of all("[data-copy]")) {
  button.addEventListener("click", async () => {
    const text = button.parentElement.querySelector("code").textContent;
    try {
      await navigator.clipboard.writeText(text);
      say(button.dataset.copy);
    } catch {
      const range = document.createRange();
      range.selectNodeContents(button.parentElement.querySelector("code"));
      const selection = getSelection();
      selection.removeAllRanges();
      selection.addRange(range);
      say(button.dataset.selects);
    }
  });
}

// Selecting rows: one box in the head of the table, and one beside the actions on a phone
for (const part of all("[data-selection]")) {
  const heads = all("[data-select-page]", part);
  const counted = part.querySelector("[data-selected]");
  const rows = all("input[name=id]", part);
  const everything = part.querySelector("[name=everything]");
  const update = () => {
    const selected = rows.filter((row) => row.checked).length;
    for (const head of heads) {
      head.checked = selected === rows.length;
      head.indeterminate = selected > 0 && selected < rows.length;
    }
    if (everything && selected < rows.length) everything.checked = false; // it is hidden
    const count = everything?.checked ? everything.dataset.total : selected;
    counted.textContent = counted.dataset.selected.replace("#", count);
  };
  for (const head of heads) {
    head.addEventListener("change", () => {
      for (const row of rows) row.checked = head.checked;
      update();
    });
  }
  for (const box of [...rows, everything]) box?.addEventListener("change", update);
  update();
}

// Of a field with several lines, browsers scroll only the line of the cursor into view.
document.addEventListener("keyup", ({ key }) => {
  if (key === "Tab") document.activeElement.scrollIntoView({ block: "nearest" });
});

// A selection that is processed in parts
document.querySelector("form[data-continues]")?.requestSubmit();

// Choices that apply at once
for (const select of all("[data-submits]")) {
  select.addEventListener("change", () => select.form.requestSubmit());
}

// Dialogs and menus close with Escape, with Cancel, and with a click beside them
const opened = () => all("details.dialog[open], details.account[open], details.menu[open]");
function close(details) {
  details.open = false;
  details.querySelector("summary").focus();
}
for (const button of all("[data-close]")) {
  button.addEventListener("click", () => close(button.closest("details")));
}
document.addEventListener("click", (event) => {
  for (const details of opened()) if (!details.contains(event.target)) details.open = false;
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") for (const details of opened()) close(details);
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    const search = document.getElementById("search");
    if (search) {
      event.preventDefault();
      search.focus();
    }
  }
});

// The unit of an amount follows the discount type
const unit = document.querySelector("[data-currency]");
const type = document.querySelector("select[name=type], select[name='coupon.type']");
type?.addEventListener("change", () => {
  const isPercent = type.value.startsWith("percent") || type.value === "buy_x_get_y";
  unit.textContent = isPercent ? "%" : unit.dataset.currency;
});

// Only the first order: a limit of 1 use per customer is proposed
const first = document.querySelector("input[name=first_order_only]");
first?.addEventListener("change", () => {
  const limit = document.querySelector("[name=usage_limit_per_user]");
  if (first.checked && !limit.value) limit.value = "1";
});

// Amount and tax of a refunded item follow its quantity
for (const line of all("[data-left]")) {
  const [most, total, tax, smallest] = line.dataset.left.split(" ").map(Number);
  line.querySelector("[name$='.quantity']")?.addEventListener("input", ({ target }) => {
    const count = Number(target.value);
    if (!Number.isInteger(count) || count < 0 || count > most) return;
    for (const [name, left] of [["total", total], ["total_tax", tax]]) {
      const part = Math.floor((2 * left * count + smallest * most) / (2 * smallest * most)) * smallest;
      const cents = count === most ? left : part;
      line.querySelector(`[name$='.${name}']`).value = count ? (cents / 100).toFixed(2) : "";
    }
  });
}

// The instant of a local time, which is given as if it were UTC
const instantOf = (local, timeZone) => {
  const inZone = (time) =>
    Date.parse(`${new Date(time).toLocaleString("sv-SE", { timeZone }).replace(" ", "T")}Z`);
  const guess = 2 * local - inZone(local);
  return guess + local - inZone(guess); // again, because the clocks can change in between
};

// A time of the shop in UTC
for (const shown of all("[data-utc]")) {
  const input = document.querySelector(shown.dataset.utc);
  input.addEventListener("input", () => {
    const time = instantOf(Date.parse(`${input.value}Z`), shown.dataset.zone);
    shown.textContent = Number.isNaN(time)
      ? ""
      : `${new Date(time).toLocaleString(language, {
          month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone: "UTC",
        })} UTC`;
  });
}

// The end of an expiry date
const expiry = document.querySelector("input[name$=expiry_date]");
const until = document.querySelector("[data-until]");
if (expiry && until) {
  const { until: text, zone, lastDay } = until.dataset;
  const format = (date, timeZone) =>
    new Intl.DateTimeFormat(language, {
      month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone,
    }).format(date);
  const show = () => {
    const date = expiry.valueAsDate;
    if (!date) {
      until.textContent = "";
      return;
    }
    const stops = lastDay === undefined ? date.getTime() : instantOf(date.getTime() + 86400000, zone);
    const end = new Date(stops - 60000);
    until.textContent = text.replace("#", format(end, "UTC")).replace("@", format(end, zone));
  };
  expiry.addEventListener("input", show);
}

// Unsaved changes
for (const form of all("form[data-unsaved]")) {
  const state = () => new URLSearchParams(new FormData(form)).toString();
  const before = state();
  let sent = false;
  form.addEventListener("submit", () => {
    sent = true;
  });
  addEventListener("beforeunload", (event) => {
    if (!sent && state() !== before) event.preventDefault();
  });
  addEventListener("pageshow", () => {
    sent = false;
  });
}
