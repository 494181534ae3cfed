for (const time of document.querySelectorAll('time')) {
  const at = new Date(time.dateTime);
  if (isNaN(at)) continue;
  time.title = time.textContent;
  time.textContent = at.toLocaleString('en-GB', {
    day: 'numeric', month: 'long', year: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit', timeZoneName: 'short',
  });
}
